"""Writes a model with the configuration of Qwen2.5-VL-7B and random weights, for a
machine with a GPU that cannot download models.

    /opt/vllm/bin/python benchmarks/random_model.py TOKENIZER DIRECTORY

``TOKENIZER`` is the model's own, or a directory with it. Layers are random. Embeddings
and the last layer are chosen so that each token suggests the next one: replies are as
long as a subject's, name actions drawn at random, and end.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoTokenizer,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/real_vllm"))
from tiny_model import PICTURE, PROCESSOR, TEMPLATE  # type: ignore[import-not-found]

#: Vocabulary of the replies. One in three of these words is left out.
WORDS = """ the wall is ahead of me and I turned left then right because food was at end this arm so next time go back
 look for landmark near corner before moving forward again remember which door opened after light came on stay away from
 water platform lies north east south west maybe try other side now reward follows tone never same place twice but
 each wrong choice costs ten steps while short paths save many more than one would think without any map"""
TEXT = {
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
}
EYES = {
    "depth": 32,
    "hidden_size": 1280,
    "intermediate_size": 3420,
    "num_heads": 16,
    "out_hidden_size": 3584,
}


def write(tokenizer: str, directory: Path) -> None:
    """Write the model."""
    tokens = AutoTokenizer.from_pretrained(tokenizer)
    tokens.chat_template = TEMPLATE
    start, end, image, video = tokens.convert_tokens_to_ids(list(PICTURE))
    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]}
    text: dict[str, Any] = {
        "vocab_size": 152064,
        "num_key_value_heads": 4,
        "max_position_embeddings": 128000,
        **TEXT,
    }
    text |= {
        "eos_token_id": tokens.eos_token_id,
        "pad_token_id": tokens.pad_token_id,
        "bos_token_id": None,
    }
    config = Qwen2_5_VLConfig(
        text_config={**text, "rope_parameters": rope},
        vision_config={
            **EYES,
            "fullatt_block_indexes": [7, 15, 23, 31],
            "window_size": 112,
            "tokens_per_second": 2,
        },
        image_token_id=image,
        video_token_id=video,
        tie_word_embeddings=False,
        vision_start_token_id=start,
        vision_end_token_id=end,
    )
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = Qwen2_5_VLForConditionalGeneration(config)
    suggest(model, follows(tokens))
    model.save_pretrained(directory)
    tokens.save_pretrained(directory)
    (directory / "preprocessor_config.json").write_text(
        json.dumps(PROCESSOR), encoding="utf-8"
    )


def follows(tokens: Any) -> dict[int, list[int]]:
    """Return the tokens that may follow each token of a reply: words, some of them left
    out, and actions.
    """
    words = list(
        dict.fromkeys(tokens.encode(" ".join(WORDS.split()), add_special_tokens=False))
    )
    chain = [*tokens.encode("\nLEARNINGS:\n"), *words, *tokens.encode(".\nACTIONS:")]
    first = chain.index(words[0])
    found = {
        one: chain[n + 1 : n + (3 if first <= n < first + len(words) - 1 else 2)]
        for n, one in enumerate(chain)
    }
    forward, left, right = (
        tokens.encode(name) for name in (" FORWARD", " ROTATE_LEFT", " ROTATE_RIGHT")
    )
    comma, starts = tokens.encode(",")[0], [forward[0], left[0]]
    found |= {
        chain[-1]: starts,
        comma: starts,
        left[0]: [left[1]],
        left[1]: [left[2], right[2]],
    }
    return found | {
        last: [comma] * 5 + [tokens.eos_token_id]
        for last in (forward[-1], left[-1], right[-1])
    }


def suggest(model: Any, found: dict[int, list[int]]) -> None:
    """Make the last token determine the next one: layers add little, and the last layer
    reads only the last token.
    """
    with torch.no_grad():
        for layer in model.model.language_model.layers:
            layer.self_attn.o_proj.weight.mul_(1e-2)
            layer.mlp.down_proj.weight.mul_(1e-2)
        inputs, outputs = model.get_input_embeddings().weight, model.lm_head.weight
        directions = torch.linalg.qr(
            torch.randn(inputs.shape[1], len(found), dtype=torch.float32)
        )[0].T
        outputs.zero_()
        for (one, following), direction in zip(
            found.items(), directions.to(inputs), strict=True
        ):
            inputs[one] = direction * inputs.shape[1] ** 0.5
            for another in set(following):
                # Scaled for a temperature of 0.7.
                more = 0.7 * torch.tensor(following.count(another)).log().item()
                outputs[another] += direction * ((30 + more) / inputs.shape[1] ** 0.5)


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]))
