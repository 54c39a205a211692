// Records reference.json: what the public file server answers to the calls below.
//   npm install @modelcontextprotocol/server-filesystem@2026.8.31
//   node record.mjs node_modules/@modelcontextprotocol/server-filesystem/dist/index.js >reference.json
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';

const files = {
  'empty.txt': '', 'one.txt': 'one', 'a.txt': 'a\nb\nc\n', 'crlf.txt': 'a\r\nb\r\nc\r\n', 'breaks.txt': '\n\n\n',
  'wide.txt': 'é日本😀\nline two\n', 'src/index.ts': 'export {};\n', 'src/index.test.ts': 'test();\n',
  'src/lib/a.js': 'a();\n', 'src/.hidden/x.js': 'x();\n', 'node_modules/m/index.js': 'm();\n', 'docs/plan.md': '# Plan\n1. Hire\n2. Move\n',
  'fence.md': 'text\n```go\nfunc f() {}\n```\nend\n',
  'code.go': 'package x\n\nfunc f() {\n\tif a {\n\t\tb()\n\t}\n}\n\nfunc g() {\n    one()\n    two()\n}\n',
  'long.txt': Array.from({ length: 60 }, (_, i) => `line ${i + 1}`).join('\n') + '\n',
  'kilobytes.txt': Array.from({ length: 300 }, (_, i) => `${i} ${'é'.repeat(i % 7)}`).join('\n'),
};
const bytes = { 'bytes.bin': '61ff62e282c3a9f09f98c0806180e2', 'bom.txt': 'efbbbf610a62' };
const links = { 'to-a': 'a.txt', 'to-src': 'src', 'dangling': 'nowhere', 'out': '../outside', 'src/up': '../a.txt' };

const calls = [];
const call = (tool, args) => calls.push({ tool, arguments: args });
const read = (p, more) => call('read_text_file', { path: p, ...more });
for (const p of [...Object.keys(files), ...Object.keys(bytes), ...Object.keys(links)]) read(p);
for (const p of ['a.txt', 'one.txt', 'empty.txt', 'crlf.txt', 'breaks.txt', 'wide.txt', 'bytes.bin'])
  for (const n of [0, 1, 2, 3, 4, 5, 100]) { read(p, { head: n }); read(p, { tail: n }); }
for (const n of [1, 299, 301]) { read('kilobytes.txt', { head: n }); read('kilobytes.txt', { tail: n }); }
read('a.txt', { head: -1 }); read('a.txt', { tail: -1 }); read('a.txt', { head: 1, tail: 1 }); read('a.txt', { head: 1.5 });
for (const p of ['', '.', 'src', 'none', 'none/x', 'a.txt/x', '/etc/passwd', '../x', 'src/../a.txt', 'src//index.ts', 'C:\\x', 'a\u0000b', '@ROOT@/a.txt', '@ROOT@x', 'dangling/x', 'to-src/index.ts', 'x'.repeat(300)]) { read(p); call('list_directory', { path: p }); }
const search = (pattern, more) => call('search_files', { path: '.', pattern, ...more });
for (const p of ['**/*.js', '*.txt', '**', '*', '**/*.{ts,js}', 'src/**', '', 'nothing', '!**/*.js', '@(a|one).txt', '**/.hidden/**', '[a-c]*', 'to-*', 'dangling', 'out', '#a'])
  for (const excludePatterns of [undefined, [], ['node_modules/**'], ['node_modules'], ['**/*.test.ts', 'src/lib'], ['*.txt', 'src/.*']]) search(p, excludePatterns && { excludePatterns });
for (const p of ['src', 'to-src', 'a.txt', 'none', '/etc']) call('search_files', { path: p, pattern: '**/*.ts' });
const edit = (p, edits, dryRun) => call('edit_file', { path: p, edits: edits.map(([oldText, newText]) => ({ oldText, newText })), ...(dryRun === undefined ? {} : { dryRun }) });
for (const dry of [true, undefined]) {
  edit('a.txt', [['b', 'B']], dry); edit('a.txt', [['c\n', 'c']], dry); edit('a.txt', [['none', 'x']], dry); edit('a.txt', [], dry);
  edit('a.txt', [['', '> ']], dry); edit('a.txt', [['a', 'b'], ['b', 'c']], dry); edit('crlf.txt', [['b\r\nc', 'x\r\ny\r\nz']], dry);
  edit('one.txt', [['one', 'one\n']], dry); edit('one.txt', [['o', '$& $1 $$']], dry); edit('empty.txt', [['', 'new\n']], dry); edit('empty.txt', [['x', 'y']], dry);
  edit('fence.md', [['end', '````']], dry); edit('fence.md', [['func f() {}', 'func g() {}']], dry);
  edit('code.go', [['if a {\n\tb()\n}', 'if c {\n\td()\n}\nelse()']], dry); edit('code.go', [['  one()\n  two()', '  one()\n      two()\n three()\nfour()']], dry);
  edit('code.go', [['\uFEFFfunc g() {\u00a0', 'func h() {']], dry); edit('to-a', [['a', 'link']], dry); edit('none', [['a', 'b']], dry); edit('src', [['a', 'b']], dry);
  edit('wide.txt', [['日本😀', 'x']], dry); edit('bytes.bin', [['a', 'b']], dry);
  edit('long.txt', [['line 3\n', 'LINE 3\n'], ['line 12\n', ''], ['line 21\n', 'x\ny\n'], ['line 40\n', 'line 40\nline 40\n']], dry);
}
// Random texts of few different lines, which have many shortest differences.
let seed = 7;
const random = n => { seed = (seed * 1103515245 + 12345) % 2147483648; return Math.floor(seed / 65536) % n; };
const text = n => Array.from({ length: n }, () => 'abcd'[random(4)]).join('\n') + (random(3) ? '\n' : '');
for (let i = 0; i < 60; i++) {
  const [old, now] = [text(1 + random(25)), text(random(25))];
  edit('empty.txt', [['', old]], false);
  edit('empty.txt', [[old, now]], true);
}

const dir = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'reference-')));
const root = path.join(dir, 'data');
const lay = () => {
  fs.rmSync(root, { recursive: true, force: true });
  for (const [name, content] of [...Object.entries(files), ...Object.entries(bytes).map(([n, h]) => [n, Buffer.from(h, 'hex')])]) {
    fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    fs.writeFileSync(path.join(root, name), content);
  }
  for (const [name, target] of Object.entries(links)) fs.symlinkSync(target, path.join(root, name));
};
fs.writeFileSync(path.join(dir, 'outside'), 'outside\n');
lay();
const server = spawn(process.execPath, [process.argv[2], root], { stdio: ['pipe', 'pipe', 'ignore'] });
const waiting = new Map();
readline.createInterface({ input: server.stdout }).on('line', l => { const m = JSON.parse(l); waiting.get(m.id)?.(m); });
let id = 0;
const ask = (method, params) => new Promise(done => { waiting.set(++id, done); server.stdin.write(JSON.stringify({ jsonrpc: '2.0', id, method, params }) + '\n'); });
await ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'record', version: '1' } });
server.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
const out = [];
for (const c of calls) {
  const r = (await ask('tools/call', { name: c.tool, arguments: JSON.parse(JSON.stringify(c.arguments).replaceAll('@ROOT@', root)) })).result;
  // The name of a temporary file is drawn at random: what is left is compared, not that.
  const changed = c.tool === 'edit_file' && !c.arguments.dryRun ? fs.existsSync(path.join(root, c.arguments.path)) && fs.statSync(path.join(root, c.arguments.path)).isFile() ? fs.readFileSync(path.join(root, c.arguments.path)).toString('latin1') : null : undefined;
  out.push({ ...c, text: r.content[0].text.replaceAll(root, '@ROOT@').replaceAll(dir, '@OUT@'), isError: r.isError === true, ...(changed === undefined ? {} : { left: changed }) });
}
server.kill();
fs.rmSync(dir, { recursive: true });
process.stdout.write(JSON.stringify({ files, bytes, links, calls: '@' }).replace('"@"', () => '[\n' + out.map(c => JSON.stringify(c)).join(',\n') + '\n]') + '\n');
