/**
 * A real agent on a vfsd mount whose daemon is killed: `npm install && npm start`, with OPENAI_API_KEY or
 * ANTHROPIC_API_KEY in the environment. VFSD is the command if vfsd is not on the PATH, MODEL is another model.
 */

import { Mount } from './mount.mjs';
import { run } from './run.mjs';

const MODELS = { OPENAI_API_KEY: 'openai/gpt-5-mini', ANTHROPIC_API_KEY: 'anthropic/claude-sonnet-4-5' };

const chosen = Object.entries(MODELS).find(([key]) => process.env[key]);
if (chosen === undefined) {
  console.log(`This example asks a real model: set ${Object.keys(MODELS).join(' or ')}. Nothing was done.`);
} else {
  const mount = new Mount();
  try {
    await run(process.env.MODEL ?? chosen[1], mount, console.log);
  } catch (error) {
    console.error(`The example ended early: ${error instanceof Error ? error.message : error}`);
    process.exitCode = 1;
  } finally {
    mount.remove();
  }
}
