"""The folder: what `cluster.yaml` may say, every problem of it with its place, and what a digest depends on."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.cluster.folder.cluster_problems import ClusterInvalid
from omnigraph.cluster.folder.read_folder import check_folder, read_folder
from omnigraph.errors import NotFound
from tests.cluster.deployments import change, write


def problems(folder: Path) -> list[str]:
    return [problem.text for problem in check_folder(folder)[1]]


def test_a_sound_folder_has_its_resources(tmp_path: Path) -> None:
    desired = read_folder(write(tmp_path))
    assert sorted(desired.resources) == [
        "graph.notes",
        "graph.people",
        "policy.base",
        "provider.embedding.default",
        "query.notes.all_notes",
        "schema.notes",
        "schema.people",
    ]
    assert desired.storage.path == str(tmp_path)
    assert desired.resources["policy.base"].needs == ("graph.notes",)
    with pytest.raises(NotFound, match=r"the cluster file .* does not exist"):
        read_folder(tmp_path / "queries")


def test_a_digest_is_of_what_is_meant(tmp_path: Path) -> None:
    before = read_folder(write(tmp_path)).resources
    change(tmp_path, "notes.pg", "node Note", "// what people write down\nnode Note")
    change(tmp_path, "cluster.yaml", "version: 1", "# ours\nversion: 1")
    assert read_folder(tmp_path).resources == before
    (tmp_path / "queries/more.gq").write_text("query one() { match { $n: Note } return { count($n) as n } }\n")
    after = read_folder(tmp_path).resources
    changed = {address for address in after if before.get(address) != after[address]}
    assert changed == {"graph.notes", "query.notes.one"}
    assert after["graph.notes"].own_digest == before["graph.notes"].own_digest


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("version: 1", "version: 2", "cluster.yaml:1:10: version must be 1"),
        ("version: 1\n", "", "cluster.yaml:1:1: version must be 1"),
        ("metadata: { name: brain }\n", "", "cluster.yaml:1:1: a cluster needs a name"),
        ("version: 1", "version: 1\nversion: 1", "cluster.yaml:2:1: the key `version` stands twice; the first is on"),
        ("version: 1", "version: 1\nui: {}", "cluster.yaml:2:1: the key `ui` is reserved"),
        ("version: 1", "version: 1\nbindings: {}", "cluster.yaml:2:1: the key `bindings` is reserved"),
        (
            "    schema: people.pg",
            "    schem: people.pg",
            "cluster.yaml:12:5: unknown key `schem`; did you mean `schema`",
        ),
        ("    schema: people.pg", "    pipelines: x\n    schema: people.pg", "12:5: the key `pipelines` is reserved"),
        ("  people:", "  cluster:", "cluster.yaml:11:3: `cluster` is no name for a graph"),
        ("  people:", "  a.b:", "cluster.yaml:11:3: `a.b` is no name"),
        ("schema: people.pg", "schema: nowhere.pg", "12:13: the schema file"),
        ("schema: people.pg", "schema: ../people.pg", "12:13: `../people.pg` lies outside the folder"),
        ("queries: queries/", "queries: quries/", "cluster.yaml:9:14: there is no folder quries/"),
        ("queries: queries/", "queries: [queries/no.gq]", "cluster.yaml:9:15: the query file"),
        ("queries: queries/", "queries: { any: { file: queries/notes.gq } }", "queries/notes.gq has no query `any`"),
        ("queries: queries/", "queries: { all_notes: { expose: true } }", "of which file is needed"),
        ("queries: queries/", "queries: 7", "cluster.yaml:9:14: queries is a folder, a list of files, or a map"),
        ("embedding_provider: default", "embedding_provider: defalt", "10:25: there is no embedding provider `defalt`"),
        ("{ kind: mock }", "{ kind: mok }", "did you mean `mock`"),
        ("{ kind: mock }", "{ kind: mock, api_key: abc }", "cluster.yaml:5:37: a key does not belong into a file"),
        (
            "{ kind: mock }",
            "{ kind: gemini, model: m }",
            "cluster.yaml:5:14: the gemini embedding provider needs a api_key",
        ),
        ("{ kind: mock }", "{ kind: mock, batch: 0 }", "a batch of at least 1"),
        (
            "{ kind: mock }",
            "{ kind: openai-compatible, model: m, base_url: http://u:p@h/ }",
            "base_url holds no credentials",
        ),
        ("applies_to: [notes, cluster]", "applies_to: [note]", "there is no graph `note`; did you mean `notes`"),
        ("applies_to: [notes, cluster]", "applies_to: []", "needs a file, and applies_to"),
        ("base.policy.yaml", "no.policy.yaml", "cluster.yaml:14:17: the policy file"),
        ("providers:", "storage: s3://k:s@b/x\nproviders:", "cluster.yaml:3:10: storage holds no credentials"),
        ("providers:", "storage: gs://b/x\nproviders:", "cluster.yaml:3:10: `gs://b/x`: graphs live at"),
        ("providers:", "state: { lock: maybe }\nproviders:", "cluster.yaml:3:16: lock is true or false"),
        ("providers:", "providers: [", "this is no YAML"),
    ],
)
def test_what_is_wrong_has_a_place(tmp_path: Path, old: str, new: str, told: str) -> None:
    write(tmp_path)
    change(tmp_path, "cluster.yaml", old, new)
    found = problems(tmp_path)
    assert any(told in problem for problem in found), found


@pytest.mark.parametrize(
    ("bases", "told"),
    [
        (["s3://a/x/", "s3://a/x/y/"], "overlaps with a base of graph `notes`"),
        (["s3://a/x/", "s3://a/xy/"], None),
        (["s3://a/../b/"], "leaves its place"),
        (["s3://a/%2e%2e/b/"], "leaves its place"),
        (["s3://a/x"], "ends with a slash"),
        (["s3://k:s@a/x/"], "holds no credentials"),
        (["https://a/x/"], "a base is s3://bucket/path/ or file:///path/"),
        (["file:///"], "is the whole disk"),
        (["file://STORAGE/graphs/"], "overlaps with the cluster's own storage"),
    ],
)
def test_blob_bases_neither_overlap_nor_escape(tmp_path: Path, bases: list[str], told: str | None) -> None:
    write(tmp_path)
    listed = ", ".join(f"{{ base: {base.replace('STORAGE', str(tmp_path))} }}" for base in bases)
    change(tmp_path, "cluster.yaml", "    queries", f"    blob_uris: {{ allow: [{listed}] }}\n    queries")
    found = problems(tmp_path)
    assert found == [] if told is None else any(told in problem for problem in found), found


def test_all_problems_are_told_at_once_each_in_its_file(tmp_path: Path) -> None:
    write(tmp_path)
    change(tmp_path, "cluster.yaml", "schema: people.pg", "schema: people.pg\n    colour: red")
    (tmp_path / "people.pg").write_text("node Person {\n    slug: Strin @key\n}\n")
    (tmp_path / "queries/notes.gq").write_text(
        "\nquery bad() {\n    match { $n: Note }\n    return { $n.nothing }\n}\n"
    )
    (tmp_path / "queries/worse.gq").write_text("query (")
    (tmp_path / "base.policy.yaml").write_text("version: 1\nrules: []\ngroups: {}\nextra: 1\n")
    with pytest.raises(ClusterInvalid) as caught:
        read_folder(tmp_path)
    found = caught.value.problems
    places = [(problem.file, problem.line) for problem in found]
    assert places == [
        ("base.policy.yaml", 0),
        ("cluster.yaml", 13),
        ("people.pg", 2),
        ("queries/notes.gq", 4),
        ("queries/worse.gq", 1),
    ]
    assert caught.value.details["problems"][1]["column"] == 5
    assert "5 problems" in caught.value.message


def test_variables_are_looked_up_only_when_they_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path)
    provider = '{ kind: openai-compatible, base_url: "https://e/v1", model: m, api_key: "${NO_SUCH_KEY}" }'
    change(tmp_path, "cluster.yaml", "{ kind: mock }", provider)
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    before = read_folder(tmp_path)
    monkeypatch.setenv("NO_SUCH_KEY", "very-secret")
    after = read_folder(tmp_path)
    assert before.config_digest == after.config_digest
    assert "very-secret" not in repr(after)
