// `sluice keys`, `sluice audit` and `sluice alerts`: who may, who did, and what people are to hear of.
import { pathOf } from '../caller.ts'
import { ended } from '../problem.ts'
import { ask, misused, PAGE, show, showPage, texts, YES, type Command } from '../command.ts'
import { unconfirmed } from '../confirm.ts'
import { EXIT } from '../exit.ts'
import { many, time, type Column } from '../output.ts'

interface Key {
  readonly id: string
  readonly name: string
  readonly role: string
  readonly made: number
  readonly by: string
}

const KEYS: readonly Column<Key>[] = [
  { title: 'id', cell: ({ id }) => id },
  { title: 'name', cell: ({ name }) => name },
  { title: 'role', cell: ({ role }) => role },
  { title: 'made', cell: ({ made }) => time(made) },
  { title: 'by', cell: ({ by }) => by },
]

export const keys: readonly Command[] = [
  {
    words: 'keys list',
    says: 'all keys to the API, without their secrets',
    run: (scene) =>
      showPage(scene, { method: 'GET', path: '/v1/keys' }, (items: readonly Key[]) =>
        scene.out.table(KEYS, items, 'There are no keys: the API answers only calls from the machine itself.'),
      ),
  },
  {
    words: 'keys make',
    takes: ['<name>'],
    says: 'a new key; its secret is shown now, and never again',
    options: texts({ role: 'read or operate; required' }),
    run: async (scene) => {
      const [name = ''] = scene.given.words
      const role = scene.given.text('role')
      if (role === undefined)
        return misused(scene, 'Say --role=read or --role=operate; the first key is one to operate.')
      const body = { name, role }
      return show(scene, { method: 'POST', path: '/v1/keys', body }, (key: Key & { readonly secret: string }) => {
        scene.out.line(key.secret)
        scene.out.note(
          `The key ${key.name} may ${key.role}. It is not shown again: SLUICE_KEY is where it is looked for.`,
        )
      })
    },
  },
  {
    words: 'keys revoke',
    takes: ['<id or name>'],
    says: 'nobody gets in with it any more',
    options: { yes: YES },
    run: async (scene) => {
      const [which = ''] = scene.given.words
      const no = await unconfirmed(scene, `The key ${which} is revoked for good. Go on?`)
      if (no !== undefined) return no
      return show(scene, { method: 'DELETE', path: pathOf('v1/keys', which), body: {} }, () => scene.out.line('Done.'))
    },
  },
]

interface Entry {
  readonly id: number
  readonly at: number
  readonly who: string
  readonly what: string
}

const AUDIT: readonly Column<Entry>[] = [
  { title: 'at', cell: ({ at }) => time(at) },
  { title: 'who', cell: ({ who }) => who },
  { title: 'what', cell: ({ what }) => what },
]

type Verified =
  | { readonly kind: 'whole'; readonly entries: number; readonly head?: { readonly chain: string } }
  | { readonly kind: 'broken'; readonly why: 'changed' | 'cut' | 'unknown'; readonly at: number }

const BROKEN = {
  changed: (at: number) => `at entry ${at}: it, or one before it, was changed`,
  cut: (at: number) => `at entry ${at}: it and what came after it are gone`,
  unknown: () => 'somewhere: the entry that was asked for is not in it',
} as const

export const audit: readonly Command[] = [
  {
    words: 'audit list',
    says: 'who did what, newest first',
    options: { ...texts({ from: 'since then, as 2026-01-31T12:00:00Z', to: 'before then' }), ...PAGE },
    run: (scene) => {
      const query = scene.given.texts(['from', 'to', 'limit', 'cursor'])
      return showPage(scene, { method: 'GET', path: '/v1/audit', query }, (items: readonly Entry[]) =>
        scene.out.table(AUDIT, items, 'Nobody has done anything.'),
      )
    },
  },
  {
    words: 'audit verify',
    says: 'whether an entry was changed or is missing; ends with 1 if so',
    options: texts({ head: 'what an earlier one said to keep: it must still be in the log' }),
    run: async (scene) => {
      const { out, given } = scene
      const answer = await ask(scene, { method: 'GET', path: '/v1/audit/verify', query: given.texts(['head']) })
      if (answer.kind !== 'done') return ended(out, answer)
      const verified = answer.value as Verified
      if (out.asJson) out.answer(verified)
      else if (verified.kind === 'whole') out.line(`The chain is whole: ${many(verified.entries, 'entry', 'entries')}.`)
      else out.line(out.paint('red', `The chain is broken ${BROKEN[verified.why](verified.at)}.`))
      if (verified.kind !== 'whole') return EXIT.failed
      if (verified.head !== undefined) out.tell(`Its head, to be kept elsewhere: --head=${verified.head.chain}`)
      return EXIT.done
    },
  },
]

interface Alert {
  readonly name: string
  readonly state: string
  readonly since?: number
  readonly text: string
  /** What its condition threw. */
  readonly broken?: string
}

const ALERTS: readonly Column<Alert>[] = [
  { title: 'alert', cell: ({ name }) => name },
  { title: 'state', cell: ({ state, broken }) => (broken === undefined ? state : `${state}, broken`) },
  { title: 'since', cell: ({ since }) => time(since) },
  {
    title: 'what',
    cell: ({ text, broken }) => (broken === undefined ? text : `${text} Its when throws: ${broken}`.trim()),
  },
]

export const alerts: Command = {
  words: 'alerts',
  says: 'all that the app declares, as they stand',
  run: (scene) =>
    showPage(scene, { method: 'GET', path: '/v1/alerts' }, (items: readonly Alert[]) =>
      scene.out.table(ALERTS, items, 'The app declares no alerts.'),
    ),
}

export const purge: Command = {
  words: 'purge',
  says: 'remove everything of one key, tenant or event, for good',
  options: {
    ...texts({
      flow: 'together with --key',
      key: 'together with --flow',
      tenant: 'all of a tenant',
      event: 'one event',
    }),
    yes: YES,
  },
  run: async (scene) => {
    const body = scene.given.texts(['flow', 'key', 'tenant', 'event'])
    const named = Object.keys(body).join('+')
    if (!['flow+key', 'tenant', 'event'].includes(named)) {
      return misused(scene, 'Give --flow and --key, or --tenant, or --event.')
    }
    const what = Object.entries(body).map(([name, value]) => `${name} ${JSON.stringify(value)}`)
    const { where } = await scene.api()
    const no = await unconfirmed(scene, `Everything of ${what.join(' and ')} is removed for good from ${where}. Go on?`)
    if (no !== undefined) return no
    return show(scene, { method: 'POST', path: '/v1/purge', body }, (removed: Readonly<Record<string, number>>) => {
      scene.out.fields(Object.entries(removed))
    })
  },
}
