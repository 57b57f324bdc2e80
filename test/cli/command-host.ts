// Runs commands for `run` and `serve` of commands-rig.ts in a process that has loaded the modules already, because loading
// takes most of the time of a command. Each command has its own folder, environment, output, signals and configuration.
import { AsyncLocalStorage } from 'node:async_hooks'
import { EventEmitter } from 'node:events'
import { registerHooks } from 'node:module'
import { Readable, Writable } from 'node:stream'

export interface HostedCommand {
  readonly id: number
  readonly folder: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

export type HostMessage =
  | { readonly id: number; readonly stream: 'stdout' | 'stderr'; readonly text: string }
  | { readonly id: number; readonly code: number }

interface Call {
  readonly id: number
  readonly signals: EventEmitter
  readonly writes: Map<Writable, Write>
  readonly end: (code: number) => void
}

type Write = Writable['write']

/** What `process.exit` throws, so that the command goes no further. */
class Exit extends Error {}

const SOURCES = new URL('../../', import.meta.url).href
const calls = new AsyncLocalStorage<Call>()
const running = new Map<number, Call>()

/** A standard stream that sends its text to the test of the command that writes. A command may replace `write` for itself. */
function createStream(stream: 'stdout' | 'stderr'): Writable {
  const made = new Writable()
  const send = (text: unknown, ...rest: readonly unknown[]): boolean => {
    const call = calls.getStore()
    if (call !== undefined) process.send?.({ id: call.id, stream, text: String(text) } satisfies HostMessage)
    const then = rest.at(-1)
    if (typeof then === 'function') setImmediate(() => void Reflect.apply(then, made, []))
    return true
  }
  return Object.defineProperty(made, 'write', {
    get: () => calls.getStore()?.writes.get(made) ?? send,
    set: (write: Write) => {
      calls.getStore()?.writes.set(made, write)
    },
  })
}

const [stdout, stderr] = [createStream('stdout'), createStream('stderr')]
Object.defineProperties(process, {
  stdout: { value: stdout },
  stderr: { value: stderr },
  stdin: { value: Readable.from([]) },
})

const [on, once] = [process.on.bind(process), process.once.bind(process)]
const isStop = (name: unknown): name is string => name === 'SIGINT' || name === 'SIGTERM'
const listen =
  (own: typeof on, method: 'on' | 'once') =>
  (name: string, listener: (...args: unknown[]) => void): NodeJS.Process => {
    const call = calls.getStore()
    if (call === undefined || !isStop(name)) return own(name as 'exit', listener)
    call.signals[method](name, listener)
    return process
  }
process.on = listen(on, 'on') as typeof process.on
process.once = listen(once, 'once') as typeof process.once

const exit = process.exit.bind(process)
process.exit = (code) => {
  const call = calls.getStore()
  if (call === undefined) return exit(code)
  call.end(Number(code ?? 0))
  throw new Exit()
}

// A command loads its configuration anew, as a process of its own would.
registerHooks({
  resolve: (specifier, context, nextResolve) => {
    const found = nextResolve(specifier, context)
    const call = calls.getStore()
    const isOfProject = !found.url.startsWith('file:') || found.url.startsWith(SOURCES)
    return call === undefined || isOfProject ? found : { ...found, url: `${found.url}?command=${call.id}` }
  },
})

const { runCommand } = await import('../../src/cli/run-command.ts')

async function execute({ id, folder, args, env }: HostedCommand): Promise<void> {
  process.chdir(folder)
  for (const name of Object.keys(process.env)) if (env[name] === undefined) delete process.env[name]
  Object.assign(process.env, env)
  const ended = Promise.withResolvers<number>()
  const call: Call = {
    id,
    signals: new EventEmitter(),
    writes: new Map(),
    end: ended.resolve,
  }
  running.set(id, call)
  await calls.run(call, async () => {
    runCommand(args).then((result) => ended.resolve(result.exit), ended.reject)
    const code = await ended.promise
    // What was written with a callback is written.
    await new Promise((resolve) => setImmediate(resolve))
    process.send?.({ id, code } satisfies HostMessage)
  })
  running.delete(id)
}

on('uncaughtException', (error) => {
  if (error instanceof Exit) return
  process.send?.({ id: -1, stream: 'stderr', text: String(error.stack) } satisfies HostMessage, () => exit(70))
})
on('disconnect', () => exit(0))
on('message', (message: HostedCommand | { readonly id: number; readonly signal: string }) => {
  if (!('signal' in message)) return void execute(message)
  const call = running.get(message.id)
  if (call !== undefined) calls.run(call, () => void call.signals.emit(message.signal))
})
