"""A followed Git repository: one branch's files, and nothing that it could make git do."""

import os
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kb.exceptions import InvalidKnowledgeError
from kb.models import Document
from kb.sources.kinds import Bounds, Place
from kb.sources.kinds.git import Git
from kb.sources.kinds.interface import SourceBoundsError
from tests.kb.sources.following import (
    ABROAD,
    CARDS,
    LOANS,
    check,
    failed,
    follow,
    proposed,
    texts,
)

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


class Repository:
    def __init__(self, folder) -> None:
        self.folder = folder
        self.git("init", "--quiet", "--initial-branch=main", str(folder))
        self.write("cards.md", CARDS)
        self.write("help/abroad.md", ABROAD)
        self.commit()

    def git(self, *arguments: str) -> None:
        names = {f"GIT_{who}_{what}": "x@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}  # fmt: skip
        at = () if arguments[0] == "init" else ("-C", str(self.folder))
        subprocess.run(
            ["git", *at, *arguments], check=True, env={**os.environ, **names}
        )

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=A change")


@pytest.fixture
def repository(directory):
    return Repository(directory / "team")


def test_a_repository_is_followed_by_its_commits(repository):
    source = follow("git", repository.folder)

    assert check(source) == {"listed": 2, "new": 2, "entries_created": 3}
    assert check(source) == {"listed": 2, "unchanged": 2}

    repository.write("cards.md", CARDS.replace("12 euros", "15 euros"))
    repository.write("loans.md", LOANS)
    (repository.folder / "help" / "abroad.md").unlink()
    assert check(source) == {"listed": 2, "unchanged": 2}, "nothing is committed"
    repository.commit()

    assert check(source) == {
        "listed": 2, "new": 1, "changed": 1, "gone": 1,
        "entries_created": 1, "entries_changed": 1, "proposed": 1,
    }  # fmt: skip
    assert proposed() == {"A transfer abroad costs 3 euros."}
    assert "A replacement card costs 15 euros." in texts()


def test_a_branch_is_named_behind_the_address(repository):
    repository.git("checkout", "--quiet", "-b", "draft")
    repository.write("loans.md", LOANS)
    repository.commit()
    repository.git("checkout", "--quiet", "main")

    assert check(follow("git", f"{repository.folder}#draft"))["listed"] == 3
    missing = follow("git", f"{repository.folder}#none", name="Missing")
    assert "none" in failed(missing, InvalidKnowledgeError)
    with pytest.raises(InvalidKnowledgeError, match="not the name of a branch"):
        follow("git", f"{repository.folder}#--upload-pack=x", name="Hostile")


def test_links_hooks_and_submodules_of_a_repository_do_nothing(repository, tmp_path):
    ran = tmp_path / "ran"
    for hook in ("post-checkout", "post-merge", "pre-receive"):
        path = repository.folder / ".git" / "hooks" / hook
        path.write_text(f"#!/bin/sh\ntouch {ran}\n")
        path.chmod(0o755)
    secret = tmp_path / "secret.md"
    secret.write_text("The key is under the mat.")
    (repository.folder / "link.md").symlink_to(secret)
    repository.write(
        ".gitmodules", f'[submodule "x"]\n\tpath = x\n\turl = file://{tmp_path}\n'
    )
    repository.write(".gitattributes", "*.md filter=evil\n")
    repository.git("config", "filter.evil.smudge", f"touch {ran}")
    repository.commit()

    assert check(follow("git", repository.folder))["listed"] == 2
    assert not ran.exists()
    assert not any("key" in text for text in texts())


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("ext::sh -c touch% /tmp/x", "not below"),
        ("ssh://git@example.org/team.git", "must begin with"),
        ("git@example.org:team.git", "not below"),
        ("file:///etc", "must begin with"),
        ("http://example.org/team.git", "must begin with"),
        ("https://user:secret@example.org/team.git", "name or a password"),
        ("https://elsewhere.org/team.git", "NESCIO_SOURCE_HOSTS: example.org"),
        ("--upload-pack=x", "not below"),
    ],
)
def test_other_protocols_hosts_and_options_are_refused(
    directory, settings, address, said
):
    settings.SOURCE_HOSTS = ["example.org"]

    with pytest.raises(InvalidKnowledgeError, match=said):
        follow("git", address)


def test_a_repository_that_is_too_large_is_not_cloned_to_its_end(repository, settings):
    (repository.folder / "large.bin").write_bytes(os.urandom(12 * 1024 * 1024))
    repository.commit()
    settings.SOURCE_MAX_MIB = 1
    source = follow("git", repository.folder)

    assert "more than 1 MiB" in failed(source, SourceBoundsError)


def test_what_is_cloned_and_then_read_is_counted_once(repository, settings):
    repository.write("prices.csv", os.urandom(350_000).hex())
    repository.commit()
    settings.SOURCE_MAX_MIB = 1
    bounds = Bounds()

    with Git().open(Place(str(repository.folder), bounds=bounds)) as found:
        contents = [each.read({}) for each in found]

    read = sum(len(each.content) for each in contents if each)
    assert read > 700_000
    assert bounds.bytes_left == 1024 * 1024 - read


def test_what_git_started_writes_no_more_once_git_is_ended(
    directory, settings, monkeypatch
):
    """`git index-pack` lives on after a killed `git clone`, and writes into its folder."""
    git = directory / "bin" / "git"
    git.parent.mkdir()
    git.write_text(
        """#!/bin/sh
for folder; do :; done
mkdir "$folder"
(while :; do n=$((n + 1)); head -c 20000 /dev/zero >"$folder/pack$n"; done) &
wait
"""
    )
    git.chmod(0o755)
    monkeypatch.setenv("PATH", str(git.parent), prepend=os.pathsep)
    settings.SOURCE_MAX_MIB = 1

    assert "more than 1 MiB" in failed(follow("git", directory), SourceBoundsError)


def test_a_credential_of_the_environment_reaches_the_server(repository, settings):
    bare = repository.folder.parent / "served.git"
    repository.git("clone", "--quiet", "--bare", ".", str(bare))
    repository.git("--git-dir", str(bare), "update-server-info")
    got = []

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            got.append(self.headers.get("Authorization"))
            if got[-1] is None:
                self.send_error(401)
            else:
                super().do_GET()

        def log_message(self, *_: object) -> None:
            pass

    handler = partial(Handler, directory=str(repository.folder.parent))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings.SOURCE_HOSTS, settings.SOURCE_ALLOW_PRIVATE = ["localhost"], True
    name = "NESCIO_SOURCE_CREDENTIAL_TEAM"
    settings.SOURCE_SECRETS = {name: "reader:s3cret"}
    address = f"http://localhost:{server.server_port}/served.git"
    try:
        source = follow("git", address, credential=name)
        # Files alone can't be cloned in part; what counts is who was asked, and how.
        said = failed(source, InvalidKnowledgeError)
    finally:
        server.shutdown()
        server.server_close()

    assert set(got) == {"Basic cmVhZGVyOnMzY3JldA=="}
    assert "s3cret" not in said
    assert not Document.objects.exists()
