// What the scripts share: where things are, how a step is run and timed. Plain JavaScript, because on a fresh clone it
// runs on whatever Node the machine has (20 or later), before anything is installed.
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

/** Every file under a folder of the project, in a fixed order. */
export const filesUnder = (folder) => filesIn(join(root, folder))

export const filesIn = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .toSorted()

/** A failure that is explained to the reader in full by its message: no stack is shown. */
export class Stop extends Error {}

/** Runs a script's main function and turns what it returns or throws into the exit code. */
export async function main(body) {
  try {
    process.exitCode = (await body(process.argv.slice(2))) ?? 0
  } catch (error) {
    console.error(error instanceof Stop ? `\n${error.message}` : error)
    process.exitCode = 1
  }
}

/** Runs a step and says how long it took. */
export async function timed(name, step) {
  const begin = performance.now()
  const result = await step()
  console.log(`${name}: ${((performance.now() - begin) / 1000).toFixed(1)} s`)
  return result
}

/**
 * Runs a program with the project's own tools, and its Node, first in the path. Hands on signals; resolves to the exit
 * code, and to the output when it is captured.
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
    // A terminal has already sent Ctrl-C to the whole group: a second one would read as impatience.
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of signals) process.on(signal, forward)

  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => {
      for (const name of signals) process.off(name, forward)
      // Died by a signal: die the same way, so that the caller sees it.
      if (signal !== null) process.kill(process.pid, signal)
      resolve({ code: code ?? 1, output })
    })
  })
}
