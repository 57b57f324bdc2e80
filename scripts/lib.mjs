// Shared by the scripts: paths, running a program, timing a step. It is plain JavaScript, because on a fresh clone it
// runs on the installed Node (20 or later) before anything is set up.
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const windows = process.platform === 'win32'

export const root = fileURLToPath(new URL('..', import.meta.url))
export const bin = join(root, 'node_modules', '.bin')
export const cache = join(root, 'node_modules', '.cache', 'sluice')
export const pinnedNode = join(root, 'node_modules', 'node', 'bin', windows ? 'node.exe' : 'node')

export const readJson = (path) => JSON.parse(readFileSync(join(root, path), 'utf8'))

/** `filesUnder` returns every file under a folder of the project, in a fixed order. */
export const filesUnder = (folder) => filesIn(join(root, folder))

export const filesIn = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .toSorted()

/** `Stop` is a failure that its message explains in full, so no stack is printed. */
export class Stop extends Error {}

/** `main` runs a script's main function, and turns its return value or error into the exit code. */
export async function main(body) {
  try {
    process.exitCode = (await body(process.argv.slice(2))) ?? 0
  } catch (error) {
    console.error(error instanceof Stop ? `\n${error.message}` : error)
    process.exitCode = 1
  }
}

/** `timed` runs a step and prints how long it took. */
export async function timed(name, step) {
  const begin = performance.now()
  const result = await step()
  console.log(`${name}: ${((performance.now() - begin) / 1000).toFixed(1)} s`)
  return result
}

/**
 * `run` runs a program with the project's own tools, and its Node, first in the path. It forwards signals, and resolves to
 * the exit code, and to the output if it is captured.
 */
export function run(command, args, { capture = false, env = process.env } = {}) {
  const path = env === process.env ? [bin, env.PATH].join(delimiter) : env.PATH
  const child = spawn(command, args, {
    cwd: root,
    env: { ...env, PATH: path },
    shell: windows && command !== pinnedNode,
    stdio: capture ? ['ignore', 'pipe', 'pipe'] : 'inherit',
  })
  let output = ''
  child.stdout?.on('data', (chunk) => (output += chunk))
  child.stderr?.on('data', (chunk) => (output += chunk))

  const forward = (signal) => {
    // A terminal has already sent Ctrl-C to the whole group; a second one would look like an impatient user.
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of signals) process.on(signal, forward)

  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => {
      for (const name of signals) process.off(name, forward)
      // The program died of a signal: this process dies the same way, so that the caller sees it.
      if (signal !== null) process.kill(process.pid, signal)
      resolve({ code: code ?? 1, output })
    })
  })
}
