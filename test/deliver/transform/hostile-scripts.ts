// Scripts that try to hold up, fill up or break the sandbox, each with what must come of it.

export interface HostileScript {
  readonly name: string
  readonly code: string
  /** What the reason of the dead letter must say. */
  readonly reason: RegExp
}

const TIME = /It ran for more than 1 s\./
const MEMORY = /It used more than 32 MB of memory\./
const STACK = /Maximum call stack size exceeded/

function script(name: string, body: string, reason: RegExp): HostileScript {
  return { name, code: body.startsWith('export') ? body : `export default () => { ${body} }`, reason }
}

/** They use up the whole time that a script has, or more. */
export const SLOW: readonly HostileScript[] = [
  script('loops', 'for (;;);', TIME),
  script('loops again in finally', 'try { for (;;); } finally { for (;;); }', TIME),
  script('catches its end', 'for (;;) { try { for (;;); } catch {} }', TIME),
  script('backtracks', `return /(a+)+$/.test('a'.repeat(40) + 'b')`, TIME),
  script('loops while it is serialized', 'return { toJSON() { for (;;); } }', TIME),
  script('loops in the message of its error', 'throw { get message() { for (;;); } }', TIME),
  script('loops while it loads', 'if (globalThis.console) for (;;);\nexport default () => {}', TIME),
  script('writes without end', 'for (;;) console.log("x".repeat(1e6))', TIME),
  script(
    'loops in a getter of its prototype',
    'Object.prototype.body = 1; Object.defineProperty(Array.prototype, 0, { get() { for (;;); } }); return [].concat([,])[0]',
    TIME,
  ),
  script('is deaf to interrupts', `const s = 'a'.repeat(8e6); for (;;) s.indexOf('a'.repeat(4e6) + 'b')`, TIME),
]

/** They fail at once. */
export const QUICK: readonly HostileScript[] = [
  script('throws', 'throw new Error("no")', /transform-failed: Error: no \(line 1\)/),
  script('throws nothing', 'throw null', /transform-failed: /),
  script('throws a megabyte', `throw new Error('x'.repeat(1e6))`, /transform-failed: Error: x{900}/),
  script('recurses', 'const again = () => again() + 1; return again()', STACK),
  script('recurses through built-in functions', 'const again = () => [1].map(again); return again()', STACK),
  script('nests what it parses', `return JSON.parse('['.repeat(1e5) + ']'.repeat(1e5))`, STACK),
  script('nests what it returns', 'let all = []; for (let n = 0; n < 1e5; n++) all = [all]; return all', STACK),
  script('nests proxies', 'let all = {}; for (let n = 0; n < 1e5; n++) all = new Proxy(all, {}); return all.x', STACK),
  script('doubles a text', `let text = 'abc'; for (;;) text += text`, /string too long|out of memory|32 MB/),
  script('asks for too many bytes', 'return new Uint8Array(33 * 2 ** 20)', MEMORY),
  script('squares a number', 'let big = 3n; for (;;) big *= big', /BigInt is too large/),
  script('returns itself', 'const all = {}; all.all = all; return all', /circular reference/),
  script('returns a number', 'return 42', /must return a list of events/),
  script('returns a symbol', 'return Symbol()', /It returned a symbol/),
  script('returns too much', `return { body: 'x'.repeat(9e6) }`, /It returned more than 8 MB/),
  script(
    'returns deep data',
    `let data = 1; for (let n = 0; n < 100; n++) data = [data]; return [{ id: 'x', data }]`,
    /must be the id of an event/,
  ),
  script('waits for ever', 'return new Promise(() => {})', /It returned a promise/),
  script(
    'replaces what it is called with',
    'JSON.parse = JSON.stringify = () => { throw 1 }; Promise = Object; globalThis.console = null; return 7',
    /it returned a number/,
  ),
  script('asks for the process', 'return process.env', /process is not defined/),
  script('asks for a module', 'return require("node:fs")', /require is not defined/),
  script('climbs up the constructors', 'return console.log.constructor("return process")()', /process is not defined/),
]

/** They fill the memory in many small steps. */
export const HUNGRY: readonly HostileScript[] = [
  script('allocates objects', 'const all = []; for (;;) all.push({ a: 1 })', MEMORY),
  script('allocates buffers', 'const all = []; for (;;) all.push(new Uint8Array(1 << 20))', MEMORY),
  script('allocates texts', `const all = []; for (let n = 0; ; n++) all.push('x'.repeat(1e5) + n)`, MEMORY),
  script(
    'allocates in jobs',
    'const all = []; const more = () => { all.push([all.length]); Promise.resolve().then(more) }; more(); for (;;) all.push({})',
    MEMORY,
  ),
]
