// The client of the control socket: MOUNTPOINT.

import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { VfsdFilesystem } from 'vfsd';
import { ControlClient, VfsdError } from 'vfsd/control';
import { print } from './report.mjs';

const [mountpoint] = process.argv.slice(2);
const client = new ControlClient(mountpoint);

/** @param {string} op @param {Record<string, unknown>} arguments_ */
async function errorCode(op, arguments_) {
  try {
    await client.request(op, arguments_);
    return 'no error';
  } catch (error) {
    if (!(error instanceof VfsdError)) throw error;
    return error.code;
  }
}

writeFileSync(`${mountpoint}/a.bin`, Uint8Array.from({ length: 200 }, (_, number) => number));
const pieces = await Promise.all(
  Array.from({ length: 200 }, (_, offset) => client.request('read_file', { path: 'a.bin', offset, length: 1 })),
);
const { mtime_ns: modified } = await client.request('stat', { path: 'a.bin' });

const big = Buffer.alloc(3 * 2 ** 20, 'vfsd');
await client.request('write_file', { path: 'big.bin', data: big.toString('base64') });
const { data } = await client.request('read_file', { path: 'big.bin' });
if (!big.equals(Buffer.from(data, 'base64')) || !big.equals(readFileSync(`${mountpoint}/big.bin`))) throw new Error('the read content is not the written content');

const many = { files: Array.from({ length: 200_000 }, () => 0) };
const unread = await Promise.all([errorCode('fly', {}), errorCode('seed_files', many), errorCode('info', {})]);

const closed = errorCode('info', {});
await client.close();
const reconnected = await Promise.all([errorCode('info', {}), errorCode('info', {})]); // while the old connection is still closing

const filesystem = new VfsdFilesystem({ mountpoint });
print({
  pipelined: pieces.map((piece) => Buffer.from(piece.data, 'base64')[0]),
  exact: modified === statSync(`${mountpoint}/a.bin`, { bigint: true }).mtimeNs,
  large: Buffer.from(data, 'base64').length,
  refused: [await errorCode('stat', { path: 'none' }), await errorCode('fly', {}), await errorCode('stat', { path: 7 })],
  unread,
  all: await filesystem.listAllPaths(),
  closed: await closed,
  reconnected,
  flushed: (await filesystem.flush()) ?? null,
});
await filesystem._destroy();
await client.close();
