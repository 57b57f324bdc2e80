// `sluice doctor` and `sluice migrate`: whether the app is set up so that nothing is lost, and what to do where it is not.
import { DEFAULTS } from '../../config.ts'
import { keepForAnswers } from '../answer-stream.ts'
import { allChecks, type Check, type StoreSafety } from '../checks.ts'
import { findOwn } from '../api-call.ts'
import { misused, type Command, type Scene } from '../command.ts'
import { EXIT } from '../exit.ts'
import { plain, type Field } from '../output.ts'
import { ended } from '../problem.ts'

const STYLES = { ok: 'green', look: 'yellow', wrong: 'red' } as const

export const doctor: Command = {
  words: 'doctor',
  says: 'what is wrong with the set-up, and what to do; ends with 1 if anything is',
  run: async (scene) => {
    const { out } = scene
    keepForAnswers()
    const checks = await allChecks(scene)
    const isWrong = checks.some(({ state }) => state === 'wrong')
    if (out.asJson) out.answer({ checks, defaults: DEFAULTS })
    else print(scene, checks)
    return isWrong ? EXIT.failed : EXIT.done
  },
}

export const migrate: Command = {
  words: 'migrate',
  says: 'bring the store to the schema of this release; the server does so when it starts',
  run: async (scene) => {
    const { given, out, where } = scene
    if (given.text('url') !== undefined) return misused(scene, 'migrate opens the store itself, and asks no server.')
    const own = await findOwn(where)
    try {
      const answer = await own.call({ method: 'GET', path: '/v1/store' })
      if (answer.kind !== 'done') return ended(out, answer)
      const { bytes, because } = answer.value as StoreSafety
      if (out.asJson) out.answer(answer.value)
      else out.line(`The store is open and has the schema of this release: ${bytes} bytes, ${because}.`)
      return EXIT.done
    } finally {
      await own.close()
    }
  },
}

function print({ out }: Scene, checks: readonly Check[]): void {
  for (const { name, state, what, fix } of checks) {
    out.line(`${out.paint(STYLES[state], state.padEnd(5))}  ${name.padEnd(13)}  ${plain(what)}`)
    if (fix !== undefined && state !== 'ok') out.line(`${' '.repeat(22)}${plain(fix)}`)
  }
  out.line(`\n${out.paint('bold', 'defaults')}`)
  out.fields(Object.entries(DEFAULTS).map(([name, value]): Field => [`  ${name}`, written(value)]))
}

function written(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value)
  return Object.entries(value)
    .map(([name, one]) => `${name} ${Array.isArray(one) ? one.join(' ') : String(one)}`)
    .join(', ')
}
