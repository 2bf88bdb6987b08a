// All writers expect the modification time that all of them have read: MOUNTPOINT. In each round exactly one may succeed,
// and the file must have its content.

import { readFileSync } from 'node:fs';
import { VfsdFilesystem } from 'vfsd';
import { print } from './report.mjs';

const ROUNDS = 40;
const [mountpoint] = process.argv.slice(2);
const writers = Array.from({ length: 16 }, () => new VfsdFilesystem({ mountpoint }));

/** @type {Set<number>} */
const winnerCounts = new Set();
/** @type {Set<string>} */
const errors = new Set();
let contentMatches = true;

await writers[0].writeFile('contested.md', '');
for (let round = 0; round < ROUNDS; round += 1) {
  const [{ modifiedAt: expectedMtime }] = await Promise.all(writers.map((writer) => writer.stat('contested.md')));
  const outcomes = await Promise.allSettled(
    writers.map((writer, number) => writer.writeFile('contested.md', `${round} ${number}`, { expectedMtime })),
  );
  const winners = outcomes.flatMap(({ status }, number) => (status === 'fulfilled' ? [number] : []));
  winnerCounts.add(winners.length);
  for (const outcome of outcomes) if (outcome.status === 'rejected') errors.add(outcome.reason.constructor.name);
  contentMatches &&= readFileSync(`${mountpoint}/contested.md`, 'utf-8') === `${round} ${winners[0]}`;
}
print({ rounds: ROUNDS, winnerCounts: [...winnerCounts], errors: [...errors], contentMatches });
await Promise.all(writers.map((writer) => writer._destroy()));
