// One client during outages of the daemon: MOUNTPOINT. Each line of standard input is a request to send.

import { createInterface } from 'node:readline';
import { ControlClient, VfsdError } from 'vfsd/control';

const [mountpoint] = process.argv.slice(2);
const client = new ControlClient(mountpoint);

/** @param {number} [timeoutMs] */
async function ask(timeoutMs) {
  try {
    await client.request('info', {}, { timeoutMs });
    return 'answered';
  } catch (error) {
    if (!(error instanceof VfsdError)) throw error;
    return error.code;
  }
}

await ask();
console.log('connected');
for await (const line of createInterface({ input: process.stdin })) {
  const asked = ask(line === 'late' ? 50 : undefined);
  if (line === 'lost') console.log('asked');
  console.log(await asked);
}
