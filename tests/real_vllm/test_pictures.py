"""A real multimodal engine: Qwen2.5-VL with tiny random weights, given the pictures of
a view.

The model has the real architecture and the real picture processor, so its counts are
those of a large one: a picture of 448 x 448 pixels is 16 x 16 tokens. Its replies mean
nothing.
"""

from __future__ import annotations

import asyncio
import io
import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from test_real_vllm import metric, read, run_pytest  # type: ignore[import-not-found]

from cheesebench import (
    BackendContext,
    ChatReply,
    ChatRequest,
    Message,
    ModelEntry,
    Sampling,
)
from cheesebench.plugins.backends.vllm import VLLM

pytestmark = pytest.mark.vllm

CONFTEST = """
from cheesebench import ModelEntry

def cheesebench_models():
    word = "(FORWARD|ROTATE_LEFT|ROTATE_RIGHT)"
    served = {{"structured_outputs": {{"regex": f"ACTIONS: {{word}}(, {{word}}){{{{7}}}}"}}}}
    return [ModelEntry(name="tiny", backend="vllm", id={model!r}, images=True, served=served, max_tokens=60)]
"""
#: Number of tokens that frame every picture of a prompt: one at its beginning, and one
#: at its end.
FRAME = 2


def picture(width: int, height: int, colour: str = "red") -> bytes:
    png = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(png, "PNG")
    return png.getvalue()


def test_a_picture_is_counted_as_its_tokens_and_found_in_the_cache(
    seeing: Any, vllm: Any, tmp_path: Path
) -> None:
    entry = ModelEntry(name="tiny", backend="vllm", id=str(vllm.seeing), images=True)
    context = BackendContext(entry=entry, directory=tmp_path, base_url=seeing.base_url)
    system = Message("system", ("You are an animal in an experiment. " * 20,))

    async def ask(*prompts: tuple[str | bytes, ...]) -> list[ChatReply]:
        connection = VLLM.connect(context)
        sampling = Sampling(temperature=0.7, max_tokens=4, seed=5)
        try:
            # One after the other, so that each call finds the cache of the one before.
            return [
                await connection.complete(
                    ChatRequest(
                        model=str(vllm.seeing),
                        messages=(system, Message("user", parts)),
                        sampling=sampling,
                    )
                )
                for parts in prompts
            ]
        finally:
            await connection.close()

    hits = metric(seeing, "vllm:mm_cache_hits_total")
    red, blue = picture(448, 448), picture(448, 448, "blue")
    words, once, again, other, two, small = asyncio.run(
        ask(
            ("which way?",),
            ("which way?", red),
            ("which way?", red),
            ("which way?", blue),
            (red, blue, "which way?"),
            ("which way?", picture(224, 140)),
        )
    )
    assert once.usage.prompt - words.usage.prompt == 16 * 16 + FRAME
    assert small.usage.prompt - words.usage.prompt == 8 * 5 + FRAME
    assert two.usage.prompt - once.usage.prompt == 16 * 16 + FRAME
    # First the words before the picture were cached; when it is shown again, the
    # picture is, too; and another picture of the same size is another prompt.
    assert once.usage.cached < words.usage.prompt < again.usage.cached
    assert other.usage.cached == once.usage.cached
    assert metric(seeing, "vllm:mm_cache_hits_total") - hits == 3, (
        "red once more, and both in the prompt of two"
    )


def test_the_protocols_in_pictures_and_in_text(
    seeing: Any, vllm: Any, tmp_path: Path
) -> None:
    (tmp_path / "conftest.py").write_text(
        CONFTEST.format(model=str(vllm.seeing)), encoding="utf-8"
    )
    before = {name: metric(seeing, f"vllm:{name}") for name in COUNTERS}
    printed = run_pytest(
        tmp_path,
        *(
            "--model",
            "tiny",
            "--view",
            "topdown_2d",
            "--view",
            "ascii_2d",
            "--design",
            "smoke",
        ),
        *("--base-url", seeing.base_url, "--cheese-run-id", "pictures"),
    )
    grown = {name: metric(seeing, f"vllm:{name}") - before[name] for name in COUNTERS}
    query = "SELECT view, trial, call, prompt_tokens, cached_tokens, completion_tokens, fault FROM calls"
    calls = read(tmp_path, "pictures", query)
    seen = [call for call in calls if call[0] == "topdown_2d"]
    told = [call for call in calls if call[0] == "ascii_2d"]
    assert not any(call[-1] for call in calls)
    # Pictures have arrived, and each was counted as at least 256 tokens.
    pictures = grown["mm_cache_queries_total"]
    assert pictures >= len(seen) > 0
    assert sum(call[3] for call in seen) > 16 * 16 * pictures
    assert len(told) > 0
    print(
        f"{len(seen)} calls with pictures, {len(told)} without; the engine counts {grown}"
    )
    # The pictures of the last steps occur again in the next prompt.
    assert grown["mm_cache_hits_total"] > 0
    prompt, cached = (sum(call[number] for call in calls) for number in (3, 4))
    # Our counts equal the engine's, so every request belongs to the run.
    assert grown["prompt_tokens_total"] == prompt
    assert grown["prefix_cache_hits_total"] == cached > 0
    said = re.sub(r"\s+", " ", printed)
    for view in (seen, told):
        assert re.search(
            rf"{sum(call[3] for call in view):,} prompt tokens, [\d.]+ % cached", said
        )


COUNTERS = (
    "mm_cache_queries_total",
    "mm_cache_hits_total",
    "prefix_cache_hits_total",
    "prompt_tokens_total",
)
