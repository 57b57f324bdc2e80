// Runs one proof in full and stores its result, with everything that is needed to repeat the run.
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { join } from 'node:path'
import type { Proof, ProofContext } from './proof.ts'

interface Saved {
  readonly seed: number
  readonly args: readonly string[]
  readonly started: string
  readonly seconds: number
  readonly state: unknown
}

const root = join(import.meta.dirname, '..')
const proofs = join(root, 'test', 'proofs')
const [name = '', ...rest] = process.argv.slice(2)

if (existsSync(join(proofs, `${name}.ts`))) {
  process.exitCode = (await prove()) ? 0 : 1
} else {
  const names = existsSync(proofs) ? readdirSync(proofs).filter((file) => file.endsWith('.ts')) : []
  console.error(name === '' ? 'Which proof? These exist:' : `There is no proof named "${name}". These exist:`)
  console.error(names.length === 0 ? '  (none yet)' : names.map((file) => `  ${file.slice(0, -3)}`).join('\n'))
  process.exitCode = 2
}

async function prove(): Promise<boolean> {
  const proof = (await import(join(proofs, `${name}.ts`))) as Proof
  const stateFile = join(root, 'proof', '.state', `${name}.json`)
  const args = rest.filter((arg) => arg !== '--fresh' && !arg.startsWith('--seed='))
  const askedSeed = rest.find((arg) => arg.startsWith('--seed='))?.slice('--seed='.length)

  if (rest.includes('--fresh')) rmSync(stateFile, { force: true })
  const saved = readSaved(stateFile, args, askedSeed)
  const seed = saved?.seed ?? Number(askedSeed ?? Math.floor(Math.random() * 2 ** 31))
  if (!Number.isSafeInteger(seed)) throw new TypeError(`--seed takes a whole number, not "${askedSeed}"`)
  const started = saved?.started ?? new Date().toISOString()
  const begin = performance.now()
  const seconds = (): number => round((saved?.seconds ?? 0) + (performance.now() - begin) / 1000)

  console.log(`${proof.title}\nseed ${seed}${saved === undefined ? '' : `, goes on after ${saved.seconds} s`}`)
  const context: ProofContext = {
    seed,
    args,
    progress: (how) => console.log(typeof how === 'number' ? `${(how * 100).toFixed(1)} %, ${seconds()} s` : how),
    // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the proof knows what it saved
    resume: <State>() => saved?.state as State | undefined,
    checkpoint: (state) => writeWhole(stateFile, { seed, args, started, seconds: seconds(), state } satisfies Saved),
  }
  const { holds, values } = await proof.run(context)

  const result = {
    title: proof.title,
    holds,
    figure: values,
    seed,
    args,
    started,
    seconds: seconds(),
    machine: machine(),
    versions: versions(),
  }
  const file = join('proof', `${name}-${started.slice(0, 10)}.json`)
  writeWhole(join(root, file), result)
  rmSync(stateFile, { force: true })
  console.log(`${JSON.stringify(values, null, 2)}\n${holds ? 'Holds' : 'DOES NOT HOLD'}: ${file}`)
  return holds
}

/** An interrupted run continues only if it was started with the same arguments. */
function readSaved(file: string, args: readonly string[], askedSeed: string | undefined): Saved | undefined {
  if (!existsSync(file)) return undefined
  const saved = JSON.parse(readFileSync(file, 'utf8')) as Saved
  const same = saved.args.join('\0') === args.join('\0') && (askedSeed ?? String(saved.seed)) === String(saved.seed)
  return same ? saved : undefined
}

/** A crash while writing leaves the old file, never half of a new one. */
function writeWhole(file: string, content: unknown): void {
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(`${file}.part`, `${JSON.stringify(content, null, 2)}\n`)
  renameSync(`${file}.part`, file)
}

function machine(): Record<string, unknown> {
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memory: round(totalmem() / 2 ** 30),
    system: `${process.platform} ${process.arch}`,
  }
}

function versions(): Record<string, unknown> {
  const own = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  return { node: process.versions.node, sqlite: process.versions['sqlite'], sluice: own.version }
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
