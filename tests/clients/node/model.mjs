// A model with scripted answers: the part of the model interface that Mastra's Agent uses (specification v2).

/** @typedef {{ type: 'text', text: string } | { type: 'tool', name: string, input: Record<string, unknown> }} Answer */
/** @typedef {(prompt: string) => Answer | Promise<Answer>} Script */

/**
 * Return a model that answers its calls one after the other. Each script gets the complete prompt as JSON.
 * @param {Script[]} scripts
 * @returns {any}
 */
export function scripted(scripts) {
  let call = 0;
  /** @param {{ prompt: unknown }} options */
  const respond = async ({ prompt }) => {
    const script = scripts[call];
    call += 1;
    if (script === undefined) throw new Error(`the model was called ${call} times, but has ${scripts.length} answers`);
    const answer = await script(JSON.stringify(prompt));
    return { answer, finishReason: answer.type === 'tool' ? 'tool-calls' : 'stop', usage: USAGE };
  };
  return {
    specificationVersion: 'v2',
    provider: 'tests',
    modelId: 'scripted',
    supportedUrls: {},
    doGenerate: async (/** @type {any} */ options) => {
      const { answer, ...rest } = await respond(options);
      return { ...rest, content: [completePart(answer, call)], warnings: [] };
    },
    doStream: async (/** @type {any} */ options) => {
      const { answer, ...rest } = await respond(options);
      return { stream: streamOf([{ type: 'stream-start', warnings: [] }, ...streamParts(answer, call), { type: 'finish', ...rest }]) };
    },
  };
}

const USAGE = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };

/** @param {Answer} answer @param {number} call */
function completePart(answer, call) {
  if (answer.type === 'text') return answer;
  return { type: 'tool-call', toolCallId: `call-${call}`, toolName: answer.name, input: JSON.stringify(answer.input) };
}

/** @param {Answer} answer @param {number} call */
function streamParts(answer, call) {
  if (answer.type === 'tool') return [completePart(answer, call)];
  const id = `text-${call}`;
  return [{ type: 'text-start', id }, { type: 'text-delta', id, delta: answer.text }, { type: 'text-end', id }];
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
