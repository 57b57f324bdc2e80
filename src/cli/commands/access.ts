// `sluice keys`, `sluice audit` and `sluice alerts`: who has access, who did what, and the state of alerts.
import type { Alert } from '../../admin/alerts.ts'
import type { AuditVerification } from '../../admin/audit.ts'
import type { ApiKey, NewApiKey } from '../../admin/keys.ts'
import type { AuditRecord } from '../../store/contract/index.ts'
import { toPath } from '../api-client.ts'
import {
  callAndConfirm,
  callAndPrint,
  confirmOrExit,
  listCommand,
  PAGE_OPTIONS,
  reportMisuse,
  textOptions,
  YES_OPTION,
  type Command,
} from '../command.ts'
import { EXIT } from '../exit.ts'
import { formatCount, formatTime } from '../output.ts'
import { byStore } from '../store-owner.ts'

const keysList = listCommand<ApiKey>({
  name: 'keys list',
  description: 'list all API keys without their secrets',
  path: '/v1/keys',
  columns: [
    'id',
    'name',
    'role',
    { title: 'tenant', cell: ({ tenant }) => tenant ?? '' },
    { title: 'created', cell: ({ created }) => formatTime(created) },
    'by',
  ],
  none: 'There are no keys yet: sluice keys create <name> --role=operate creates the first one.',
})

const ROLES: ReadonlySet<string> = new Set(['read', 'publish', 'register', 'operate'])

export const keys: readonly Command[] = [
  { ...keysList, run: (context) => keysList.run(byStore(context)) },
  {
    name: 'keys create',
    positionals: ['<name>'],
    description: 'create an API key; its secret is shown once',
    options: textOptions({
      role: 'read, publish, register or operate; required',
      tenant: 'with the role register: the tenant of the endpoints that the key creates',
    }),
    run: async (context) => {
      const [name = ''] = context.args.words
      const role = context.args.text('role')
      if (role === undefined || !ROLES.has(role)) {
        const why = role === undefined ? 'the first key needs operate' : `got ${JSON.stringify(role)}`
        return reportMisuse(context, `--role must be read, publish, register or operate; ${why}.`)
      }
      const body = { name, role, ...context.args.texts(['tenant']) }
      return callAndPrint(byStore(context), { method: 'POST', path: '/v1/keys', body }, (key: NewApiKey) => {
        context.output.print(key.secret)
        context.output.note(
          `The key ${key.name} has the role ${key.role}. It is not shown again. Commands read it from SLUICE_KEY.`,
        )
      })
    },
  },
  {
    name: 'keys revoke',
    positionals: ['<id or name>'],
    description: 'revoke an API key',
    options: { yes: YES_OPTION },
    run: async (context) => {
      const [which = ''] = context.args.words
      const no = await confirmOrExit(context, `This revokes the key ${which} permanently. Continue?`)
      if (no !== undefined) return no
      const call = { method: 'DELETE', path: toPath('v1/keys', which), body: {} } as const
      return callAndConfirm(byStore(context), call)
    },
  },
]

const BREAK_TEXTS = {
  changed: (at: number) => `The chain is broken at entry ${at}: that entry or an earlier one was changed.`,
  cut: (at: number) => `The chain is broken at entry ${at}: that entry and all later ones are missing.`,
  unknown: () => 'The chain is broken: no entry has the hash given with --head.',
} as const

export const audit: readonly Command[] = [
  listCommand<AuditRecord>({
    name: 'audit list',
    description: 'list the audit log, newest first',
    options: {
      ...textOptions({ from: 'entries from this time on, e.g. 2026-01-31T12:00:00Z', to: 'entries before this time' }),
      ...PAGE_OPTIONS,
    },
    path: '/v1/audit',
    columns: [{ title: 'at', cell: ({ at }) => formatTime(at) }, 'who', 'what'],
    none: 'The audit log has no entries.',
  }),
  {
    name: 'audit verify',
    description: 'verify the audit log; exit code 1 if an entry was changed or is missing',
    options: textOptions({
      head: 'the hash that an earlier audit verify --verbose printed; the log must still contain it',
    }),
    run: (context) => {
      const { output, args } = context
      const call = { method: 'GET', path: '/v1/audit/verify', query: args.texts(['head']) } as const
      const print = (verified: AuditVerification): void => {
        if (verified.kind !== 'whole') return output.print(output.paint('red', BREAK_TEXTS[verified.why](verified.at)))
        output.print(`The chain is whole: ${formatCount(verified.entries, 'entry', 'entries')}.`)
      }
      return callAndPrint(context, call, print, (verified: AuditVerification) => {
        if (verified.kind !== 'whole') return EXIT.failed
        if (verified.head !== undefined) {
          const hint = 'Keep the hash of the newest entry elsewhere, and pass it later'
          output.printVerbose(`${hint}: --head=${verified.head.chain}`)
        }
        return EXIT.done
      })
    },
  },
]

export const alerts: Command = listCommand<Alert>({
  name: 'alerts',
  description: 'list the declared alerts with their states',
  path: '/v1/alerts',
  columns: [
    { title: 'alert', cell: ({ name }) => name },
    { title: 'state', cell: ({ state, broken }) => (broken === undefined ? state : `${state}, broken`) },
    { title: 'since', cell: ({ since }) => formatTime(since) },
    {
      title: 'message',
      cell: ({ text, broken }) => (broken === undefined ? text : `${text} The function when throws: ${broken}`.trim()),
    },
  ],
  none: 'The app declares no alerts.',
})

export const purge: Command = {
  name: 'purge',
  description: 'purge everything of one key, tenant, subject or event; cannot be undone',
  options: {
    ...textOptions({
      flow: 'requires --key',
      key: 'requires --flow',
      tenant: 'everything of this tenant',
      subject: 'the events of this subject, e.g. a user; with --tenant, only those of the tenant',
      event: 'the event with this id',
    }),
    yes: YES_OPTION,
  },
  run: async (context) => {
    const body = context.args.texts(['flow', 'key', 'tenant', 'subject', 'event'])
    const named = Object.keys(body).join('+')
    if (!['flow+key', 'tenant', 'subject', 'tenant+subject', 'event'].includes(named)) {
      return reportMisuse(context, 'Pass --flow and --key, or --tenant, or --subject, or --event.')
    }
    const what = Object.entries(body).map(([name, value]) => `${name} ${JSON.stringify(value)}`)
    const { location } = await context.connect()
    const no = await confirmOrExit(
      context,
      `This permanently removes everything of ${what.join(' and ')} from ${location}. Continue?`,
    )
    if (no !== undefined) return no
    return callAndPrint(
      context,
      { method: 'POST', path: '/v1/purge', body },
      (removed: Readonly<Record<string, number>>) => {
        context.output.fields(Object.entries(removed))
      },
    )
  },
}
