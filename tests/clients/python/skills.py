"""Print, as JSON, the prompt that deepagents builds from the skills in DIRECTORY. No real model is used."""

import json
import sys
from collections.abc import Sequence
from typing import Any

from deepagents import create_deep_agent  # type: ignore[import-not-found]  # has an interpreter of its own
from deepagents.backends import FilesystemBackend  # type: ignore[import-not-found]  # the same
from langchain_core.language_models import BaseChatModel  # type: ignore[import-not-found]  # the same
from langchain_core.messages import AIMessage, BaseMessage  # type: ignore[import-not-found]  # the same
from langchain_core.outputs import ChatGeneration, ChatResult  # type: ignore[import-not-found]  # the same
from pydantic import Field  # type: ignore[import-not-found]  # the same


class RecordingModel(BaseChatModel):  # type: ignore[misc]  # for mypy it is Any
    """A model that records its prompts, and answers only "done"."""

    prompts: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "recording"

    def bind_tools(self, tools: Sequence[Any], **given: Any) -> "RecordingModel":
        """Ignore the tools, because the model calls none."""
        return self

    def _generate(self, messages: list[BaseMessage], *given: Any, **more: Any) -> ChatResult:
        self.prompts.append(str(messages[0].content))
        return ChatResult(generations=[ChatGeneration(message=AIMessage("done"))])


def main() -> None:
    """Run an agent once, and print the prompts."""
    model, backend = RecordingModel(), FilesystemBackend(root_dir=sys.argv[1], virtual_mode=True)
    agent = create_deep_agent(model=model, backend=backend, skills=["/skills"])
    agent.invoke({"messages": [("user", "Review this.")]})
    print(json.dumps(model.prompts))


if __name__ == "__main__":
    main()
