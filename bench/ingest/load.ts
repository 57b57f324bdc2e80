// Measures one side of the ingest bench: one process serves it, and another one sends to it.
import { fork, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { SideName } from './sides.ts'

export interface Serving {
  readonly port: number
  readonly stop: () => Promise<void>
}

/** An empty `service` means a file in the folder. */
export async function serveSide(name: SideName, folder: string, service: string): Promise<Serving> {
  const server = fork(fileURLToPath(new URL('./serve.ts', import.meta.url)), [name, folder, service])
  const stop = async (): Promise<void> => {
    const exited = server.exitCode === null ? once(server, 'exit') : undefined
    if (server.connected) server.send('stop')
    await exited
  }
  return { port: await portOf(server, name), stop }
}

async function portOf(server: ChildProcess, name: string): Promise<number> {
  const failed = once(server, 'exit').then(() => Promise.reject(new Error(`The server of ${name} did not start.`)))
  const [message] = (await Promise.race([once(server, 'message'), failed])) as [{ readonly port: number }]
  return message.port
}

export interface Load {
  readonly port: number
  readonly connections: number
  readonly seconds: number
  /** Requests per second; 0 sends as fast as possible. */
  readonly rate: number
  /** Another seed gives other delivery ids. */
  readonly seed: string
}

export interface Sent {
  readonly accepted: number
  readonly busy: number
  readonly other: number
  readonly millis: number
  readonly p50: number
  readonly p99: number
}

export async function send({ port, connections, seconds, rate, seed }: Load): Promise<Sent> {
  const args = [port, connections, seconds, rate, seed].map(String)
  const sender = spawn(process.execPath, [fileURLToPath(new URL('./sender.ts', import.meta.url)), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let out = ''
  for await (const chunk of sender.stdout) out += String(chunk)
  return JSON.parse(out) as Sent
}
