"""Open weights on this machine's GPUs without a server: a vLLM engine of this process's own.

Each process has its own engine, so it is for sessions without ``-n``; where several are to share, use ``vllm``.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import inspect
import itertools
import multiprocessing
import os
from typing import Any

from cheesebench import (
    BackendContext,
    BackendSpec,
    Capabilities,
    ChatFaultError,
    ChatReply,
    ChatRequest,
    Connection,
    Finish,
    OptionError,
    PluginError,
    Usage,
    install_command,
    quoted,
)
from cheesebench.plugins.backends.openai import check_served
from cheesebench.plugins.backends.replies import replace_surrogates, split_thoughts
from cheesebench.plugins.backends.supervisor import Guard
from cheesebench.plugins.backends.vllm_options import MEANINGS, Dealer, copies, flags

#: What goes to the chat template, not to the sampler, if the registry's served settings name it.
_TEMPLATE = "chat_template_kwargs"


class Engine:
    """A vLLM engine as a ``Connection``: create it inside the event loop (which waits until it is loaded)."""

    def __init__(self, model: str, arguments: list[str], among: int) -> None:
        import vllm
        import vllm.exceptions
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.utils.argparse_utils import FlexibleArgumentParser
        from vllm.v1.engine.async_llm import AsyncLLM

        self._vllm = vllm
        #: What vLLM raises for requests that it does not take: ValueError once, an error of its own today.
        self._refusals = (ValueError, getattr(vllm.exceptions, "VLLMClientError", ValueError))
        self._model = model
        self._dealer = Dealer(among)
        self._numbers = itertools.count()
        parser = AsyncEngineArgs.add_cli_args(FlexibleArgumentParser(prog="vllm", add_help=False))
        try:
            parsed = parser.parse_args(["--model", model, *arguments])
        except SystemExit:
            raise OptionError(
                f"vLLM rejects its options, for the reason printed above. They were: {quoted(' '.join(arguments))}"
            ) from None
        try:
            self._engine: Any = AsyncLLM.from_engine_args(AsyncEngineArgs.from_cli_args(parsed))
        except Exception as error:
            raise PluginError(f"vLLM cannot load '{model}': {quoted(str(error))}") from error
        # The engine does not notice when we are killed, and would keep the GPU.
        children = multiprocessing.active_children()
        self._guard = Guard(child.pid for child in children if child.pid and child.name.startswith("EngineCore"))
        self._tokenizer: Any = self._engine.get_tokenizer()
        self._most: int = self._engine.model_config.max_model_len

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply, or raise ChatFaultError."""
        try:
            async with asyncio.timeout(request.timeout):
                return await self._complete(request)
        except TimeoutError:
            raise ChatFaultError("timeout", f"vLLM has not answered within {request.timeout:g} s.") from None

    async def close(self) -> None:
        """End the engine and its processes."""
        # Let go of it, too: an engine that is still there when Python exits complains.
        engine, self._engine = self._engine, None
        if engine is not None:
            # In one go in a thread: whoever closes us may not have the patience to wait for it.
            await asyncio.to_thread(self._end, engine)

    def _end(self, engine: Any) -> None:
        engine.shutdown()
        self._guard.release()

    async def _complete(self, request: ChatRequest) -> ChatReply:
        prompt = self._prompt(request)
        parameters = self._parameters(request, room=self._most - len(prompt))
        name = f"cheesebench-{next(self._numbers)}"
        copy = self._dealer.copy_for(request.conversation)
        output: Any = None
        try:
            tokens = {"type": "token", "prompt_token_ids": prompt}
            replies = self._engine.generate(tokens, parameters, name, data_parallel_rank=copy)
            async with contextlib.aclosing(replies):
                async for last in replies:
                    output = last
        except self._refusals as error:
            raise ChatFaultError("bad_request", f"vLLM refuses the request: {quoted(str(error))}") from None
        except Exception as error:
            raise ChatFaultError("server", f"vLLM's engine fails: {quoted(str(error))}") from error
        if output is None or not output.outputs:
            raise ChatFaultError("malformed", "vLLM's engine ended the request without a reply.")
        reply = output.outputs[0]
        text, thoughts = split_thoughts(reply.text)
        finish: Finish = reply.finish_reason if reply.finish_reason in ("stop", "length") else "other"
        return ChatReply(
            text=replace_surrogates(text),
            reasoning=replace_surrogates(thoughts),
            finish=finish,
            usage=Usage(prompt=len(prompt), completion=len(reply.token_ids), cached=output.num_cached_tokens or 0),
            model=self._model,
        )

    def _prompt(self, request: ChatRequest) -> list[int]:
        """Return the tokens of the prompt: the model's own chat template over the messages."""
        messages = [{"role": message.role, "content": message.text} for message in request.messages]
        settings = request.extra.get(_TEMPLATE, {})
        try:
            text = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **settings)
        except Exception as error:  # templates raise whatever they like
            raise ChatFaultError("bad_request", f"The model's chat template fails: {quoted(str(error))}") from None
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return tokens

    def _parameters(self, request: ChatRequest, room: int) -> Any:
        """Return vLLM's sampling parameters; ``room`` is how many tokens the context has left for the reply."""
        sampling, extra = request.sampling, {name: v for name, v in request.extra.items() if name != _TEMPLATE}
        if room < 1:
            raise ChatFaultError(
                "context_too_long",
                f"The prompt has {self._most - room} tokens, which leaves no room for a reply in the model's context "
                f"of {self._most}.",
            )
        most = extra.pop("max_tokens", sampling.max_tokens)
        settings: dict[str, Any] = {
            "temperature": sampling.temperature,
            "seed": sampling.seed,
            "stop": list(sampling.stop) or None,
            "max_tokens": room if most is None else min(most, room),  # as the server does it
            **extra,
        }
        kind = self._vllm.SamplingParams
        if unknown := settings.keys() - inspect.signature(kind).parameters.keys():
            raise ChatFaultError(
                "bad_request",
                f"vLLM's engine has no sampling parameter '{quoted(min(unknown), 60)}' (it is among the model's "
                "served settings). Remove it, or try the backend 'vllm'.",
            )
        try:
            return kind(
                **{name: value for name, value in settings.items() if value is not None},
                output_kind=self._vllm.sampling_params.RequestOutputKind.FINAL_ONLY,
            )
        except (TypeError, *self._refusals) as error:
            raise ChatFaultError("bad_request", f"vLLM refuses the sampling: {quoted(str(error))}") from None


def connect(context: BackendContext) -> Connection:
    """Load the engine; PluginError where vLLM is not installed or cannot load the model."""
    check_served(context.entry.served)
    if context.base_url:
        raise OptionError(
            f"The engine of 'vllm-offline' runs in this process, so it cannot be at {quoted(context.base_url, 100)}. "
            "To use a server, choose the backend 'vllm'."
        )
    if importlib.util.find_spec("vllm") is None:
        raise PluginError(
            f"vLLM is not installed for this Python. Install it ({install_command('vllm')}), or use the "
            "backend 'vllm' with another Python's vLLM (--backend-option python=/path/to/python)."
        )
    # Read when vLLM is imported. Processes that are forked from one with threads may hang; its log is not ours.
    os.environ.setdefault("VLLM_WORKER_MULTIPROCESSING_METHOD", "spawn")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    arguments = ["--enable-prefix-caching", "--generation-config", "vllm", *flags(context.options)]
    return Engine(context.entry.id, arguments, copies(context.options))


VLLM_OFFLINE = BackendSpec(
    name="vllm-offline",
    connect=connect,
    # Pictures need the model's own processor, which the server brings.
    capabilities=Capabilities(images=False),
    options=MEANINGS,
    # A question beforehand would load the model twice; what is wrong shows when it is loaded.
    probe=False,
    summary="open weights on this machine's GPUs: a vLLM engine in this process, without a server, text only",
)
