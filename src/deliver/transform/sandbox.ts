// `createSandbox` runs scripts of strangers, each in a QuickJS instance of its own: a WebAssembly memory that no other
// script has seen and none will see. A script gets JSON and returns JSON. It has no clock, no chance and no I/O, so the same
// input gives the same output each time.
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { EvalFlags, JSException, QuickJS, type JSValueHandle, type QuickJSOptions } from 'quickjs-wasi'
import { systemClock, type Millis } from '../../clock.ts'
import type { ScriptCall, ScriptFailure, ScriptLimits, ScriptResult } from './script.ts'

/** The compiler knows WebAssembly only as a part of browsers. */
const { WebAssembly } = globalThis as unknown as {
  readonly WebAssembly: {
    readonly compile: (bytes: Uint8Array) => Promise<WasmModule>
    readonly RuntimeError: ErrorConstructor
  }
}
type WasmModule = QuickJSOptions['wasm']
interface WasmMemory {
  readonly buffer: ArrayBuffer
}

export type Sandbox = (call: ScriptCall) => Promise<ScriptResult>

const FILE = 'transform.js'
const LINE = new RegExp(`${FILE.replace('.', '\\.')}:(\\d+)`)
/** A deeper stack would overflow that of the thread first. */
const STACK_BYTES = 128 * 1_024
/** The memory of the instance may exceed what the script holds by its gaps, but never by more than this factor. */
const MEMORY_SLACK = 3
const CONSOLE_LINES = 100
const MESSAGE_LENGTH = 1_000

/**
 * Gives the script its console, and returns the function that calls its default export. The code takes what it needs before
 * the script can replace it, so that a script which changes built-in objects gets no further than its own failure.
 */
const PRELUDE = `(log) => {
  'use strict'
  const { parse, stringify } = JSON
  const call = Function.prototype.call
  const slice = call.bind(String.prototype.slice)
  const join = call.bind(Array.prototype.join)
  const map = call.bind(Array.prototype.map)
  const [Text, Promised, Fault] = [String, Promise, TypeError]
  const show = (value) => {
    if (typeof value === 'string') return value
    if (value instanceof Error) return Text(value)
    try { return stringify(value) ?? Text(value) } catch { return Text(value) }
  }
  const write = (...values) => log(slice(join(map(values, show), ' '), 0, ${MESSAGE_LENGTH}))
  globalThis.console = { log: write, info: write, debug: write, warn: write, error: write }
  return (given, input) => {
    const returned = given(...parse(input))
    if (returned === undefined || returned === null) return undefined
    if (returned instanceof Promised) throw new Fault('It returned a promise. A transformation is synchronous: it has no I/O to wait for.')
    const text = stringify(returned)
    if (text === undefined) throw new Fault('It returned a ' + typeof returned + '.')
    return text
  }
}`

/** `createSandbox` compiles QuickJS, which takes longer than most scripts run. */
export async function createSandbox(): Promise<Sandbox> {
  const bytes = await readFile(fileURLToPath(import.meta.resolve('quickjs-wasi/quickjs.wasm')))
  const wasm = await WebAssembly.compile(bytes)
  return (call) => runScript(wasm, call)
}

/** The instance is dropped and never disposed of: after a failure, its own clean-up could fail too. */
async function runScript(wasm: WasmModule, call: ScriptCall): Promise<ScriptResult> {
  const began = systemClock.monotonic()
  const lines: string[] = []
  const { limits } = call
  let [broken, time]: [ScriptFailure['why'] | undefined, bigint] = [undefined, BigInt(call.seed) * 1_000n]
  let memory: WasmMemory | undefined
  const failed = (failure: ScriptFailure): ScriptResult => ({ failure, console: lines, ms: elapsed() })
  const elapsed = (): Millis => systemClock.monotonic() - began
  const used = processorTime()
  try {
    const vm = await QuickJS.create({
      wasm,
      memoryLimit: limits.memory,
      maxStackSize: STACK_BYTES,
      timezoneOffset: 0,
      interruptHandler: () => {
        if (processorTime() - used > limits.time) broken = 'time'
        else if ((memory?.buffer.byteLength ?? 0) > MEMORY_SLACK * limits.memory) broken = 'memory'
        return broken !== undefined
      },
      // QuickJS seeds its random numbers by the microseconds of the clock when it starts, so the clock shows the seed until then.
      wasi: (own: WasmMemory) => {
        memory = own
        return deterministicSystem(own, () => time)
      },
    })
    time = BigInt(call.time) * 1_000_000n
    const log = vm.newFunction('log', (text) => {
      if (lines.length < CONSOLE_LINES) lines.push(text?.toString().slice(0, MESSAGE_LENGTH) ?? '')
      return vm.undefined
    })
    const main = vm.callFunction(vm.evalCode(`(${PRELUDE})`, 'sluice'), vm.undefined, log)
    const given = await loadFunction(vm, call.code)
    if (typeof given === 'string') return failed(explain(new Error(given), broken, limits))
    if (call.input === undefined) return { console: lines, ms: elapsed() }
    const returned = vm.callFunction(main, vm.undefined, given, vm.newString(call.input))
    // A script that was interrupted did not return, even if it seems so.
    if (broken !== undefined) return failed(explain(undefined, broken, limits))
    return { ...(!returned.isUndefined && { output: returned.toString() }), console: lines, ms: elapsed() }
  } catch (error) {
    return failed(explain(error, broken, limits))
  }
}

/** A busy machine must cost no delivery, so the limit is on what the thread computes. Node 22 can only tell how long it took. */
function processorTime(): Millis {
  if (typeof process.threadCpuUsage !== 'function') return systemClock.monotonic()
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

/** Returns the default export of the code, or the reason why the code has no usable one. */
async function loadFunction(vm: QuickJS, code: string): Promise<JSValueHandle | string> {
  const loading = vm.evalCode(code, FILE, EvalFlags.TYPE_MODULE)
  vm.executePendingJobs()
  if (loading.promiseState === 0) return 'The top-level await never ends.'
  const settled = vm.resolvePromise(loading)
  vm.executePendingJobs()
  const loaded = await settled
  if ('error' in loaded) {
    const { error } = loaded
    if (!error.isError) return 'The code threw outside of its function.'
    // Thrown again in the sandbox, because only it can tell what was thrown.
    vm.callFunction(vm.evalCode('(error) => { throw error }', 'sluice'), vm.undefined, error)
    throw new Error('The call above throws.')
  }
  const given = loaded.value.getProp('default')
  if (given.isFunction) return given
  return 'The code has no default export that is a function. Write export default function (events) { … }.'
}

/** `explain` may run code of the script once more, e.g. the getter of a message. The interrupt handler still watches. */
function explain(error: unknown, broken: ScriptFailure['why'] | undefined, limits: ScriptLimits): ScriptFailure {
  const [name, message, stack] = [readText(error, 'name'), readText(error, 'message'), readText(error, 'stack')]
  const found = LINE.exec(stack)?.[1]
  const line = found === undefined ? {} : { line: Number(found) }
  if (broken === 'time') return { why: 'time', message: `It ran for more than ${limits.time / 1_000} s.`, ...line }
  if (broken === 'memory' || (name === 'InternalError' && message === 'out of memory')) {
    return { why: 'memory', message: `It used more than ${limits.memory / 1_024 / 1_024} MB of memory.`, ...line }
  }
  const isOurs = !(error instanceof JSException)
  if (isOurs && error instanceof WebAssembly.RuntimeError) return { why: 'crashed', message: 'It broke its sandbox.' }
  const text = isOurs && name === 'Error' ? message : `${name}: ${message}`
  return { why: 'threw', message: text.slice(0, MESSAGE_LENGTH), ...line }
}

function readText(error: unknown, member: 'name' | 'message' | 'stack'): string {
  try {
    const value: unknown = (error as Partial<Error> | undefined)?.[member]
    return typeof value === 'string' ? value : ''
  } catch {
    return ''
  }
}

/** The system calls of QuickJS. None reaches the machine. */
function deterministicSystem(memory: WasmMemory, time: () => bigint): Record<string, (...args: never[]) => number> {
  return {
    clock_time_get: (_id: number, _precision: bigint, at: number) => {
      new DataView(memory.buffer).setBigUint64(at, time(), true)
      return 0
    },
    random_get: (at: number, length: number) => {
      new Uint8Array(memory.buffer, at, length).fill(0)
      return 0
    },
    fd_write: () => ERROR_BAD_FILE,
  }
}

const ERROR_BAD_FILE = 8
