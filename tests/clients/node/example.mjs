// The Mastra example with a scripted model instead of a real one.

import { Mount } from '../../../examples/mastra/mount.mjs';
import { run } from '../../../examples/mastra/run.mjs';
import { scripted } from './model.mjs';
import { print } from './report.mjs';

const FACTS = 'The bridge is closed on Mondays [user]\nThe ferry costs 4 euros [user]\n';
let firstPrompt = '';

const model = scripted([
  (prompt) => {
    firstPrompt = prompt;
    return { type: 'tool', name: 'skill', input: { name: 'field-notes' } };
  },
  (prompt) => {
    if (!prompt.includes('Write one fact a line')) throw new Error('the skill was not activated');
    return { type: 'tool', name: 'mastra_workspace_write_file', input: { path: 'notes/facts.md', content: FACTS } };
  },
  () => ({ type: 'text', text: 'noted' }),
  () => ({ type: 'tool', name: 'mastra_workspace_read_file', input: { path: 'notes/facts.md' } }),
  (prompt) => ({ type: 'text', text: prompt.match(/4 euros \[\w+\]/)?.[0] ?? 'the fact is not in the prompt' }),
]);

const mount = new Mount();
try {
  print({ ...(await run(model, mount, () => {})), prompt: firstPrompt });
} finally {
  mount.remove();
}
