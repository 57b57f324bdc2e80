// `sluice endpoints`, what is done to one: tested, proven, enabled again, replayed, and a token made for it.
import { ask, misused, show, texts, YES, type Command } from '../command.ts'
import { EXIT } from '../exit.ts'
import { unconfirmed } from '../confirm.ts'
import { many, plain } from '../output.ts'
import { ended } from '../problem.ts'
import { one } from './endpoints-paths.ts'

interface Tested {
  readonly delivered: boolean
  readonly status?: number
  readonly ms: number
  readonly answer?: string
  readonly error: string
}

export const endpointActs: readonly Command[] = [
  {
    words: 'endpoints test',
    takes: ['<id>'],
    says: 'one signed test event to it alone; ends with 1 if it was not delivered',
    run: async (scene) => {
      const asked = await ask(scene, { method: 'POST', path: one(scene, 'test'), body: {} })
      if (asked.kind !== 'done') return ended(scene.out, asked)
      const { delivered, status, ms, answer = '', error } = asked.value as Tested
      if (scene.out.asJson) scene.out.answer(asked.value)
      else
        scene.out.line(
          delivered ? `Delivered: ${status} after ${ms} ms.` : `Not delivered, after ${ms} ms: ${plain(error)}`,
        )
      if (!scene.out.asJson && answer !== '') scene.out.note(plain(answer))
      return delivered ? EXIT.done : EXIT.failed
    },
  },
  {
    words: 'endpoints enable',
    takes: ['<id>'],
    says: 'after it was disabled',
    options: { ...texts({ from: 'backlog: what waits is delivered; now: it is dropped, asks; required' }), yes: YES },
    run: async (scene) => {
      const from = scene.given.text('from')
      if (from === undefined)
        return misused(scene, 'Say --from=backlog to deliver what waits, or --from=now to drop it.')
      const no = from === 'now' ? await unconfirmed(scene, 'What waits for the endpoint is dropped. Go on?') : undefined
      if (no !== undefined) return no
      const call = { method: 'POST', path: one(scene, 'enable'), body: { from } } as const
      return show(scene, call, ({ dropped }: { readonly dropped: number }) =>
        scene.out.line(from === 'now' ? `Done. ${many(dropped, 'event')} dropped.` : 'Done.'),
      )
    },
  },
  {
    words: 'endpoints prove',
    takes: ['<id>'],
    says: 'asks it to prove that it is its owner’s; ends with 1 if it does not',
    run: async (scene) => {
      const asked = await ask(scene, { method: 'POST', path: one(scene, 'prove'), body: {} })
      if (asked.kind !== 'done') return ended(scene.out, asked)
      const { proofError } = asked.value as { readonly proofError?: string }
      if (scene.out.asJson) scene.out.answer(asked.value)
      else scene.out.line(proofError === undefined ? 'It is proven.' : `It is not proven: ${plain(proofError)}`)
      return proofError === undefined ? EXIT.done : EXIT.failed
    },
  },
  {
    words: 'endpoints replay',
    takes: ['<id>'],
    says: 'what could not be delivered to it is tried again',
    options: texts({ letter: 'one dead letter; all unless said' }),
    run: (scene) => {
      const call = { method: 'POST', path: one(scene, 'replay'), body: scene.given.texts(['letter']) } as const
      return show(scene, call, ({ count }: { readonly count: number }) =>
        scene.out.line(`${many(count, 'batch', 'batches')} to be tried again.`),
      )
    },
  },
  {
    words: 'endpoints token',
    takes: ['<id>'],
    says: 'for the subscriber: its deliveries, test, replay and rotation, nothing else; shown now, and never again',
    run: (scene) =>
      show(scene, { method: 'POST', path: one(scene, 'token'), body: {} }, ({ token }: { readonly token: string }) => {
        scene.out.line(token)
        scene.out.note('The token is not shown again; the one before has ended.')
      }),
  },
  {
    words: 'endpoints revoke-token',
    takes: ['<id>'],
    says: 'nobody gets in with it any more',
    run: (scene) =>
      show(scene, { method: 'DELETE', path: one(scene, 'token'), body: {} }, () => scene.out.line('Done.')),
  },
]
