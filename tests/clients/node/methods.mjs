// Every method of a Mastra file system, with every option and every kind of error: KIND DIRECTORY OUTSIDE, both empty.

import { symlinkSync, writeFileSync } from 'node:fs';
import { filesystem } from './filesystems.mjs';
import { outcomes, print } from './report.mjs';

const [kind, directory, outside] = process.argv.slice(2);
const fs = filesystem(kind, directory);
const readOnly = filesystem(kind, directory, { readOnly: true });
const LONG_AGO = new Date(1000);

/** @param {string} path */
const text = (path) => fs.readFile(path, { encoding: 'utf-8' });

/** Leave out the size of a directory and the name of a root: they differ. @param {string} path */
async function statDirectory(path) {
  const { name: _, size: __, ...rest } = await fs.stat(path);
  return rest;
}

/** @type {import('./report.mjs').Step[]} */
const READING = [
  ['write text', () => fs.writeFile('a.txt', 'grüße\n')],
  ['read text', () => text('a.txt')],
  ['read bytes', () => fs.readFile('a.txt')],
  ['read by absolute path', () => fs.readFile(`${directory}/a.txt`, { encoding: 'utf-8' })],
  ['read base64', () => fs.readFile('a.txt', { encoding: 'base64' })],
  ['read a missing file', () => fs.readFile('none.txt')],
  ['read a directory', () => fs.readFile('.')],
  ['read below a file', () => fs.readFile('a.txt/b')],
  ['read outside', () => fs.readFile('../outside.txt')],
  ['read absolute outside', () => fs.readFile('/a.txt')],
  ['read a name too long', () => fs.readFile('n'.repeat(256))],
  ['exists', () => fs.exists('a.txt')],
  ['exists, a missing file', () => fs.exists('none.txt')],
  ['stat a file', () => fs.stat('a.txt')],
  ['stat a directory', () => statDirectory('.')],
  ['stat a missing file', () => fs.stat('none.txt')],
  ['isTextFile', () => fs.isTextFile('a.txt')],
  ['resolveAbsolutePath', () => fs.resolveAbsolutePath('a.txt')],
];

/** @type {import('./report.mjs').Step[]} */
const WRITING = [
  ['write bytes', () => fs.writeFile('bytes.bin', Buffer.from([0, 1, 255, 254]))],
  ['read them', () => fs.readFile('bytes.bin')],
  ['write an array', () => fs.writeFile('array.bin', new Uint8Array([9, 8, 7]))],
  ['read it', () => fs.readFile('array.bin')],
  ['write an empty file', () => fs.writeFile('empty', '')],
  ['read the empty file', () => text('empty')],
  ['write shorter', () => fs.writeFile('a.txt', 'x').then(() => text('a.txt'))],
  ['write two MiB', () => fs.writeFile('big', 'z'.repeat(2 ** 21)).then(() => fs.stat('big'))],
  ['write deep', () => fs.writeFile('d/e/f.txt', 'deep').then(() => text('d/e/f.txt'))],
  ['write without parents', () => fs.writeFile('no/f.txt', 'x', { recursive: false })],
  ['write with a file as parent', () => fs.writeFile('a.txt/f.txt', 'x')],
  ['write with a file as parent, not recursive', () => fs.writeFile('a.txt/f.txt', 'x', { recursive: false })],
  ['write without overwrite', () => fs.writeFile('a.txt', 'y', { overwrite: false })],
  ['write a new one, without overwrite', () => fs.writeFile('new.txt', 'y', { overwrite: false }).then(() => text('new.txt'))],
  ['write a directory', () => fs.writeFile('d', 'x')],
  ['write outside', () => fs.writeFile('../outside.txt', 'x')],
  ['write, read-only', () => readOnly.writeFile('a.txt', 'x')],
  ['write stale', () => fs.writeFile('a.txt', 'stale', { expectedMtime: LONG_AGO })],
  ['write fresh', async () => {
    const { modifiedAt } = await fs.stat('a.txt');
    await fs.writeFile('a.txt', 'fresh', { expectedMtime: modifiedAt });
    return text('a.txt');
  }],
  ['write what is gone', async () => {
    await fs.writeFile('gone.txt', 'made', { expectedMtime: LONG_AGO });
    return text('gone.txt');
  }],
  ['write what is gone, deep', async () => {
    await fs.writeFile('x/y/gone.txt', 'made', { expectedMtime: LONG_AGO });
    return text('x/y/gone.txt');
  }],
  ['expected, without parents', () => fs.writeFile('no/f.txt', 'x', { expectedMtime: LONG_AGO, recursive: false })],
  ['expected, a file as parent', () => fs.writeFile('a.txt/f', 'x', { expectedMtime: LONG_AGO, recursive: false })],
  ['expected, a directory', async () => {
    const { modifiedAt } = await fs.stat('d');
    await fs.writeFile('d', 'x', { expectedMtime: modifiedAt });
  }],
  ['expected, a name too long', () => fs.writeFile('n'.repeat(256), 'x', { expectedMtime: LONG_AGO })],
  ['expected, 65 MiB', async () => {
    await fs.writeFile('huge', '');
    const { modifiedAt } = await fs.stat('huge');
    await fs.writeFile('huge', Buffer.alloc(65 * 2 ** 20), { expectedMtime: modifiedAt });
    const { size } = await fs.stat('huge');
    await fs.deleteFile('huge');
    return size;
  }],
  ['expected, outside', () => fs.writeFile('../f.txt', 'x', { expectedMtime: LONG_AGO })],
  ['expected, read-only', () => readOnly.writeFile('a.txt', 'x', { expectedMtime: LONG_AGO })],
  ['expected, without overwrite', async () => {
    const { modifiedAt } = await fs.stat('a.txt');
    await fs.writeFile('a.txt', 'x', { expectedMtime: modifiedAt, overwrite: false });
  }],
  ['append', () => fs.appendFile('a.txt', '+').then(() => text('a.txt'))],
  ['append to a missing file', () => fs.appendFile('p/q/log.txt', 'one').then(() => text('p/q/log.txt'))],
  ['append to a directory', () => fs.appendFile('d', 'x')],
  ['append, read-only', () => readOnly.appendFile('a.txt', 'x')],
  ['two hundred appends at once', async () => {
    await Promise.all(Array.from({ length: 200 }, () => fs.appendFile('many.txt', 'line\n')));
    return fs.stat('many.txt');
  }],
];

/** @type {import('./report.mjs').Step[]} */
const MOVING = [
  ['copy', () => fs.copyFile('a.txt', 'copy.txt').then(() => text('copy.txt'))],
  ['copy over', () => fs.copyFile('bytes.bin', 'copy.txt').then(() => fs.readFile('copy.txt'))],
  ['copy without overwrite', () => fs.copyFile('a.txt', 'copy.txt', { overwrite: false })],
  ['copy a missing file', () => fs.copyFile('none.txt', 'copy.txt')],
  ['copy a directory', () => fs.copyFile('d', 'd2')],
  ['copy a tree', () => fs.copyFile('d', 'd2', { recursive: true }).then(() => text('d2/e/f.txt'))],
  ['copy, read-only', () => readOnly.copyFile('a.txt', 'b.txt')],
  ['copy to deep', () => fs.copyFile('a.txt', 'c/c/c.txt').then(() => text('c/c/c.txt'))],
  ['move', () => fs.moveFile('copy.txt', 'moved.txt').then(() => fs.exists('copy.txt'))],
  ['move over', () => fs.moveFile('moved.txt', 'new.txt').then(() => fs.readFile('new.txt'))],
  ['move without overwrite', () => fs.moveFile('new.txt', 'a.txt', { overwrite: false })],
  ['move to a free name, without overwrite', () => fs.moveFile('new.txt', 'n2.txt', { overwrite: false })],
  ['move a missing file', () => fs.moveFile('none.txt', 'x.txt')],
  ['move a tree', () => fs.moveFile('d2', 'm/d3').then(() => text('m/d3/e/f.txt'))],
  ['move into itself', () => fs.moveFile('m', 'm/inner')],
  ['move over a tree', () => fs.moveFile('c', 'm')],
  ['move, read-only', () => readOnly.moveFile('a.txt', 'b.txt')],
  ['delete', () => fs.deleteFile('n2.txt').then(() => fs.exists('n2.txt'))],
  ['delete a missing file', () => fs.deleteFile('n2.txt')],
  ['delete a missing file, forced', () => fs.deleteFile('n2.txt', { force: true })],
  ['delete a directory', () => fs.deleteFile('d')],
  ['delete, read-only', () => readOnly.deleteFile('a.txt')],
];

/** @type {import('./report.mjs').Step[]} */
const DIRECTORIES = [
  ['mkdir', () => fs.mkdir('k').then(() => statDirectory('k'))],
  ['mkdir again', () => fs.mkdir('k')],
  ['mkdir again, not recursive', () => fs.mkdir('k', { recursive: false })],
  ['mkdir deep', () => fs.mkdir('k/l/m').then(() => fs.exists('k/l/m'))],
  ['mkdir deep, not recursive', () => fs.mkdir('o/p', { recursive: false })],
  ['mkdir over a file', () => fs.mkdir('a.txt')],
  ['mkdir over a file, not recursive', () => fs.mkdir('a.txt', { recursive: false })],
  ['mkdir below a file', () => fs.mkdir('a.txt/x')],
  ['mkdir, read-only', () => readOnly.mkdir('s')],
  ['readdir', () => fs.readdir('.')],
  ['readdir a tree', () => fs.readdir('m', { recursive: true })],
  ['readdir two levels', () => fs.readdir('.', { recursive: true, maxDepth: 1 })],
  ['readdir of one kind', () => fs.readdir('.', { extension: '.txt' })],
  ['readdir of two kinds', () => fs.readdir('.', { recursive: true, extension: ['txt', '.bin'] })],
  ['readdir a missing directory', () => fs.readdir('none')],
  ['readdir a file', () => fs.readdir('a.txt')],
  ['rmdir not empty', () => fs.rmdir('m')],
  ['rmdir', () => fs.rmdir('k/l/m').then(() => fs.exists('k/l/m'))],
  ['rmdir a tree', () => fs.rmdir('m', { recursive: true }).then(() => fs.exists('m'))],
  ['rmdir a missing directory', () => fs.rmdir('none')],
  ['rmdir a missing directory, forced', () => fs.rmdir('none', { force: true })],
  ['rmdir a file', () => fs.rmdir('a.txt')],
  ['rmdir, read-only', () => readOnly.rmdir('k')],
];

/** @type {import('./report.mjs').Step[]} */
const LINKS = [
  ['link', () => symlinkSync('a.txt', `${directory}/link`)],
  ['read through it', () => text('link')],
  ['write through it', () => fs.writeFile('link', 'linked').then(() => text('a.txt'))],
  ['write through it, fresh', async () => {
    const { modifiedAt } = await fs.stat('link');
    await fs.writeFile('link', 'fresh', { expectedMtime: modifiedAt });
    return text('a.txt');
  }],
  ['its realpath', () => fs.realpath('link')],
  ['realpath of a missing file', () => fs.realpath('none')],
  ['links in a listing', () => fs.readdir('.', { extension: '.none' })],
  ['link to a directory', () => symlinkSync('d', `${directory}/dlink`)],
  ['read below it', () => text('dlink/e/f.txt')],
  ['a link that leads out', () => symlinkSync(outside, `${directory}/out`)],
  ['read through that', () => fs.readFile('out/secret')],
  ['write through that', () => fs.writeFile('out/secret', 'x')],
  ['expected, through that', () => fs.writeFile('out/secret', 'x', { expectedMtime: LONG_AGO })],
  ['a link to itself', () => symlinkSync('loop', `${directory}/loop`)],
  ['read the loop', () => fs.readFile('loop')],
  ['expected, the loop', () => fs.writeFile('loop', 'x', { expectedMtime: LONG_AGO })],
  ['delete a link', () => fs.deleteFile('link').then(() => fs.exists('a.txt'))],
  ['a name of many scripts', () => fs.writeFile('naïve 名前 🗂.md', 'x').then(() => fs.readdir('.', { extension: '.md' }))],
];

writeFileSync(`${outside}/secret`, 'secret');
const steps = [...READING, ...WRITING, ...MOVING, ...DIRECTORIES, ...LINKS];
print(await outcomes(directory, steps));
await Promise.all([fs._destroy(), readOnly._destroy()]);
