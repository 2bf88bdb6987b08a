// A model that says what a test tells it to: enough of the interface that Mastra's Agent asks of one (specification v2).

/** @typedef {{ type: 'text', text: string } | { type: 'tool', name: string, input: Record<string, unknown> }} Turn */
/** @typedef {(prompt: string) => Turn | Promise<Turn>} Answer */

/**
 * Return a model that answers its calls in turn. Each answer is given the whole prompt, as JSON.
 * @param {Answer[]} answers
 * @returns {any}
 */
export function scripted(answers) {
  let call = 0;
  /** @param {{ prompt: unknown }} options */
  const respond = async ({ prompt }) => {
    const answer = answers[call];
    call += 1;
    if (answer === undefined) throw new Error(`the model was asked ${call} times, and has ${answers.length} answers`);
    const turn = await answer(JSON.stringify(prompt));
    return { turn, finishReason: turn.type === 'tool' ? 'tool-calls' : 'stop', usage: USAGE };
  };
  return {
    specificationVersion: 'v2',
    provider: 'tests',
    modelId: 'scripted',
    supportedUrls: {},
    doGenerate: async (/** @type {any} */ options) => {
      const { turn, ...rest } = await respond(options);
      return { ...rest, content: [whole(turn, call)], warnings: [] };
    },
    doStream: async (/** @type {any} */ options) => {
      const { turn, ...rest } = await respond(options);
      return { stream: streamOf([{ type: 'stream-start', warnings: [] }, ...pieces(turn, call), { type: 'finish', ...rest }]) };
    },
  };
}

const USAGE = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };

/** @param {Turn} turn @param {number} call */
function whole(turn, call) {
  if (turn.type === 'text') return turn;
  return { type: 'tool-call', toolCallId: `call-${call}`, toolName: turn.name, input: JSON.stringify(turn.input) };
}

/** @param {Turn} turn @param {number} call */
function pieces(turn, call) {
  if (turn.type === 'tool') return [whole(turn, call)];
  const id = `text-${call}`;
  return [{ type: 'text-start', id }, { type: 'text-delta', id, delta: turn.text }, { type: 'text-end', id }];
}

/** @param {unknown[]} parts */
function streamOf(parts) {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
}
