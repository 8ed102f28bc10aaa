"""A real vLLM on the CPU for the tests: an environment of its own and a tiny model,
made once and kept.

``python tests/real_vllm/recipe.py`` makes them by hand. They are kept in ``.venv-vllm``
at the top of the repository, or where CHEESEBENCH_VLLM_HOME says (several checkouts can
share one): 1.8 GB.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: Seconds: half a minute on an idle machine, minutes on a busy one.
STARTUP_TIMEOUT = 400.0
HERE = Path(__file__).parent
#: Environment variable with the folder of the environment and the model.
HOME = "CHEESEBENCH_VLLM_HOME"
#: Markers of secrets, because a third party's build must never get a key.
SECRETS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL")
#: Settings for vLLM on a machine without a GPU; and no network, no reports home.
CPU: Mapping[str, str] = {
    "VLLM_TARGET_DEVICE": "cpu",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    # Runs the model in the process of the engine ("uni"), which takes less memory, and
    # starts and stops sooner.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}
#: Options of the engine on the CPU. Prompts are read whole, because it crashes on a
#: seeded request that it reads in pieces.
ENGINE: Mapping[str, str] = {
    "max_model_len": "8192",
    "enforce_eager": "true",
    "max_num_batched_tokens": "32768",
    "extra_args": "--block-size 32 --no-enable-chunked-prefill --distributed-executor-backend uni",
}


#: See _mend_torchvision.
TORCHVISION = """

if not _has_ops():
    _operators = torch.library.Library("torchvision", "DEF")
    for _name in ("nms", "qnms"):
        _operators.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""


@dataclass(frozen=True, slots=True)
class RealVllm:
    """A Python with vLLM, and two models that it can load: one that reads, and one that
    also sees.
    """

    python: Path
    model: Path
    seeing: Path


def prepare() -> RealVllm:
    """Return the existing installation, or make one (seconds to a minute); one process
    at a time.
    """
    home = Path(os.environ.get(HOME) or HERE.parents[1] / ".venv-vllm")
    home.mkdir(parents=True, exist_ok=True)
    found = RealVllm(
        home / "venv" / "bin" / "python", home / "tiny", home / "tiny-seeing"
    )
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        recipe = b"".join(
            (HERE / name).read_bytes()
            for name in ("requirements.txt", "tiny_model.py", "recipe.py")
        )
        stamp, expected = (
            home / "stamp",
            hashlib.sha256(recipe + sys.version.encode()).hexdigest(),
        )
        if not stamp.exists() or stamp.read_text(encoding="ascii") != expected:
            stamp.unlink(missing_ok=True)
            _install(home / "venv")
            for model in (found.model, found.seeing):
                shutil.rmtree(model, ignore_errors=True)
            run(found.python, str(HERE / "tiny_model.py"), str(home))
            stamp.write_text(expected, encoding="ascii")
    return found


def environment() -> dict[str, str]:
    """Return this process's environment without secrets, plus this checkout and the
    settings for vLLM on a CPU.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not any(s in name.upper() for s in SECRETS)
    }
    return {**kept, **CPU, "PYTHONPATH": str(HERE.parents[1])}


def run(*command: str | Path, **more: str) -> None:
    """Run a command without secrets; its output is shown only if it fails."""
    done = subprocess.run(
        command,
        env={**environment(), **more},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(
            f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-4000:]}"
        )


def _install(directory: Path) -> None:
    venv.create(directory, clear=True, with_pip=True, symlinks=True)
    python = directory / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "uv")
    # uv does not read pip's settings, but the CPU build of torch has to come from
    # somewhere.
    settings = {
        "UV_FIND_LINKS": _pip_setting(python, "find-links"),
        "UV_DEFAULT_INDEX": _pip_setting(python, "index-url"),
    }
    more: list[str | Path] = (
        [] if settings["UV_FIND_LINKS"] else ["--torch-backend", "cpu"]
    )
    program = directory / "bin" / "uv"
    wanted: list[str | Path] = [
        "--no-deps",
        "--python",
        python,
        *more,
        "-r",
        HERE / "requirements.txt",
    ]
    run(
        program,
        "pip",
        "install",
        "-q",
        "--no-cache",
        *wanted,
        **{name: v for name, v in settings.items() if v},
    )
    _mend_torchvision(python)


def _mend_torchvision(python: Path) -> None:
    """Let torchvision be imported where its wheel was built for CUDA, as that of the
    package index is.

    Without CUDA's libraries it cannot load its operators, and then fails because they
    are not defined (https://github.com/pytorch/vision/issues/9085). Nothing here calls
    them, so to define them is enough.
    """
    found = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        text=True,
        capture_output=True,
        check=True,
    )
    with (Path(found.stdout.strip()) / "torchvision" / "extension.py").open(
        "a", encoding="utf-8"
    ) as module:
        module.write(TORCHVISION)
    run(python, "-c", "import torchvision.transforms.v2.functional")


def _pip_setting(python: Path, name: str) -> str:
    for variable in (f"UV_{name}", f"PIP_{name}"):
        if value := os.environ.get(variable.upper().replace("-", "_")):
            return ",".join(value.split())
    done = subprocess.run(
        [python, "-m", "pip", "config", "get", f"global.{name}"],
        text=True,
        capture_output=True,
        check=False,
    )
    return ",".join(done.stdout.split()) if done.returncode == 0 else ""


if __name__ == "__main__":
    print(prepare())
