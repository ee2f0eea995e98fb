import pytest


@pytest.fixture
def directory(settings, tmp_path, import_directory):
    """Return a directory below which folders may be followed."""
    root = tmp_path / "sources"
    root.mkdir()
    settings.SOURCE_DIRECTORIES = [str(root)]
    return root
