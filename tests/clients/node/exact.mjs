// Two writers within one millisecond: MOUNTPOINT. Both have read the same file; the times that they expect look alike.

import { utimesSync } from 'node:fs';
import { VfsdFilesystem } from 'vfsd';
import { print } from './report.mjs';

const SECOND = 1_700_000_000;
const [mountpoint] = process.argv.slice(2);
const [one, other] = [new VfsdFilesystem({ mountpoint }), new VfsdFilesystem({ mountpoint })];

await one.writeFile('file.md', 'first');
utimesSync(`${mountpoint}/file.md`, SECOND, SECOND + 0.0001);
const seen = await one.stat('file.md');
await other.writeFile('file.md', 'second');
utimesSync(`${mountpoint}/file.md`, SECOND, SECOND + 0.0002);
const again = await other.stat('file.md');

/** @param {VfsdFilesystem} writer @param {Date} expectedMtime */
async function outcome(writer, expectedMtime) {
  try {
    await writer.writeFile('file.md', 'third', { expectedMtime });
    return 'written';
  } catch (error) {
    return /** @type {Error} */ (error).constructor.name;
  }
}

print({
  sameMillisecond: seen.modifiedAt.getTime() === again.modifiedAt.getTime(),
  old: await outcome(one, seen.modifiedAt),
  present: await outcome(other, again.modifiedAt),
});
await Promise.all([one._destroy(), other._destroy()]);
