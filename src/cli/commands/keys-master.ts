// `sluice keys master` and `sluice keys rotate-master`: under which master key things are sealed, and all of them under the newest.
import type { MasterKeyState, RotatedPage } from '../../operate/master-key.ts'
import { ask, show, type Command, type Scene } from '../command.ts'
import { EXIT, type Exit } from '../exit.ts'
import { many } from '../output.ts'
import { ended } from '../problem.ts'
import { Progress } from '../progress.ts'

const STATE = { method: 'GET', path: '/v1/keys/master' } as const
const OLDER_KEY = 'Put the key they were sealed under behind the newest in SLUICE_MASTER_KEY, with a comma between.'

export const masterKey: readonly Command[] = [
  {
    words: 'keys master',
    says: 'how much is sealed under which master key',
    run: (scene) =>
      show(scene, STATE, ({ key, documents, older, unreadable }: MasterKeyState) => {
        scene.out.fields([
          ['key', key === '' ? 'none' : key],
          ['documents', documents],
          ['under an older key', older],
          ['unreadable', unreadable.length],
        ])
        sayUnreadable(scene, unreadable)
      }),
  },
  {
    words: 'keys rotate-master',
    says: 'seal all that is under an older master key under the first of SLUICE_MASTER_KEY; goes on where it was stopped',
    run: async (scene) => {
      const before = await ask(scene, STATE)
      if (before.kind !== 'done') return ended(scene.out, before)
      return rotate(scene, (before.value as MasterKeyState).documents)
    },
  },
]

async function rotate(scene: Scene, total: number): Promise<Exit> {
  const { out, clock, signal } = scene
  const progress = new Progress({ stream: out.stderr, clock, what: 'rotate-master', total })
  const sum = { looked: 0, resealed: 0, unreadable: [] as string[] }
  for (let after: string | undefined, isFirst = true; isFirst || after !== undefined; isFirst = false) {
    const body = after === undefined ? {} : { after }
    const answer = await ask(scene, { method: 'POST', path: '/v1/keys/rotate-master', body })
    if (answer.kind !== 'done') return ended(out, answer)
    const page = answer.value as RotatedPage
    sum.looked += page.looked
    sum.resealed += page.resealed
    sum.unreadable.push(...page.unreadable)
    after = page.next
    progress.at(sum.looked)
    if (signal.aborted && after !== undefined) {
      out.note('It was stopped; asked again, it goes on.')
      return EXIT.failed
    }
  }
  progress.end()
  if (out.asJson) out.answer(sum)
  else out.line(`${many(sum.resealed, 'document')} of ${sum.looked} sealed under the newest key.`)
  sayUnreadable(scene, sum.unreadable)
  if (sum.unreadable.length > 0) return EXIT.failed
  if (!out.asJson) out.note('Once every process seals under it, the older keys can be left out.')
  return EXIT.done
}

function sayUnreadable({ out }: Scene, unreadable: readonly string[]): void {
  if (unreadable.length === 0 || out.asJson) return
  out.note(`Under no key that is at hand: ${unreadable.slice(0, 10).join(', ')}. ${OLDER_KEY}`)
}
