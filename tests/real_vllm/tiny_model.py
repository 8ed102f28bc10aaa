"""Makes tiny random models: real architectures and chat templates, meaningless weights.
Run by vLLM's Python.

Argument: the directory to write to: ``tiny`` reads text (Qwen2), ``tiny-seeing`` also
sees (Qwen2.5-VL). The same seed gives the same files. Nothing is downloaded.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2Config,
    Qwen2ForCausalLM,
)

SEED = 0
#: Large, because words are split into far more tokens than by a real tokenizer, and
#: prompts have pictures, too.
CONTEXT = 32768
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'text' %}{{ part['text'] }}{% else %}<|vision_start|><|image_pad|><|vision_end|>{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
PICTURE = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
#: As in the real model: the engine cuts pictures into squares of 14 pixels, and makes a
#: token of 2 x 2 of them.
PROCESSOR = {
    "image_processor_type": "Qwen2VLImageProcessor",
    "processor_class": "Qwen2_5_VLProcessor",
    "patch_size": 14,
    "temporal_patch_size": 2,
    "merge_size": 2,
    "min_pixels": 56 * 56,
    "max_pixels": 28 * 28 * 1280,
    "size": {"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 1280},
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
TEXT = (
    "You are an animal in an experiment. Look at the picture, remember what was rewarded, and act.",
    "LEARNINGS: the wall is ahead; turning helps.",
    "ACTIONS: FORWARD, ROTATE_LEFT, ROTATE_RIGHT, STAY",
    "#####\n#..o#\n#.>.#\n#####",
)


def tokenizer(*special: str) -> Any:
    """Return a tokenizer that has learnt a little English."""
    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    words.train_from_iterator(
        TEXT * 4,
        trainers.BpeTrainer(
            vocab_size=600,
            special_tokens=list(special),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    found = PreTrainedTokenizerFast(
        tokenizer_object=words, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    found.chat_template = TEMPLATE
    return found


def layers(tokens: Any) -> dict[str, Any]:
    """Return the settings of a small language model."""
    return {
        "vocab_size": len(tokens),
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": CONTEXT,
        "eos_token_id": tokens.eos_token_id,
        "pad_token_id": tokens.pad_token_id,
        "bos_token_id": None,
        "tie_word_embeddings": True,
    }


def reading(directory: Path) -> None:
    """Write a model that reads text."""
    tokens = tokenizer(*SPECIAL)
    tokens.save_pretrained(directory)
    torch.manual_seed(SEED)
    Qwen2ForCausalLM(Qwen2Config(**layers(tokens))).save_pretrained(directory)


def seeing(directory: Path) -> None:
    """Write a model that also sees pictures."""
    tokens = tokenizer(*SPECIAL, *PICTURE)
    tokens.save_pretrained(directory)
    torch.manual_seed(SEED)
    start, end, image, video = tokens.convert_tokens_to_ids(list(PICTURE))
    # Division of the 16 pairs of a head's 32 numbers among time, height and width.
    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [4, 6, 6]}
    eyes = {
        "depth": 2,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_heads": 2,
        "out_hidden_size": 64,
    }
    config = Qwen2_5_VLConfig(
        text_config={**layers(tokens), "rope_parameters": rope},
        vision_config={**eyes, "fullatt_block_indexes": [1]},
        image_token_id=image,
        video_token_id=video,
        vision_start_token_id=start,
        vision_end_token_id=end,
        tie_word_embeddings=True,
    )
    Qwen2_5_VLForConditionalGeneration(config).save_pretrained(directory)
    (directory / "preprocessor_config.json").write_text(
        json.dumps(PROCESSOR), encoding="utf-8"
    )


if __name__ == "__main__":
    reading(Path(sys.argv[1]) / "tiny")
    seeing(Path(sys.argv[1]) / "tiny-seeing")
