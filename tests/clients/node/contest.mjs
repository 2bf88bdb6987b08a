// Writers that all expect the modification time they all saw: MOUNTPOINT. In each round exactly one may win, and its
// content must be what stands there.

import { readFileSync } from 'node:fs';
import { VfsdFilesystem } from 'vfsd';
import { print } from './report.mjs';

const ROUNDS = 40;
const [mountpoint] = process.argv.slice(2);
const writers = Array.from({ length: 16 }, () => new VfsdFilesystem({ mountpoint }));

/** @type {Set<number>} */
const won = new Set();
/** @type {Set<string>} */
const lost = new Set();
let kept = true;

await writers[0].writeFile('contested.md', '');
for (let round = 0; round < ROUNDS; round += 1) {
  const { modifiedAt: expectedMtime } = await writers[0].stat('contested.md');
  const outcomes = await Promise.allSettled(
    writers.map((writer, number) => writer.writeFile('contested.md', `${round} ${number}`, { expectedMtime })),
  );
  const winners = outcomes.flatMap(({ status }, number) => (status === 'fulfilled' ? [number] : []));
  won.add(winners.length);
  for (const outcome of outcomes) if (outcome.status === 'rejected') lost.add(outcome.reason.constructor.name);
  kept &&= readFileSync(`${mountpoint}/contested.md`, 'utf-8') === `${round} ${winners[0]}`;
}
print({ rounds: ROUNDS, won: [...won], lost: [...lost], kept });
await Promise.all(writers.map((writer) => writer._destroy()));
