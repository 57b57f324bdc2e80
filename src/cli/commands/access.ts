// `sluice keys`, `sluice audit` and `sluice alerts`: who has access, who did what, and the state of alerts.
import type { Alert } from '../../admin/alerts.ts'
import type { AuditVerification } from '../../admin/audit.ts'
import type { ApiKey, NewApiKey } from '../../admin/keys.ts'
import type { AuditRecord } from '../../store/contract/index.ts'
import { toPath } from '../api-client.ts'
import { reportFailure } from '../problem.ts'
import {
  callAndConfirm,
  callAndPrint,
  callApi,
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
  columns: ['id', 'name', 'role', { title: 'made', cell: ({ made }) => formatTime(made) }, 'by'],
  none: 'There are no keys yet: sluice keys make <name> --role=operate makes the first.',
})

export const keys: readonly Command[] = [
  { ...keysList, run: (context) => keysList.run(byStore(context)) },
  {
    name: 'keys make',
    positionals: ['<name>'],
    description: 'create an API key; its secret is shown once',
    options: textOptions({ role: 'read or operate; required' }),
    run: async (context) => {
      const [name = ''] = context.args.words
      const role = context.args.text('role')
      if (role === undefined)
        return reportMisuse(context, '--role must be read or operate; the first key needs operate.')
      const body = { name, role }
      return callAndPrint(byStore(context), { method: 'POST', path: '/v1/keys', body }, (key: NewApiKey) => {
        context.output.print(key.secret)
        context.output.note(
          `The key ${key.name} may ${key.role}. It is not shown again: SLUICE_KEY is where it is looked for.`,
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
      const no = await confirmOrExit(context, `The key ${which} is revoked for good. Go on?`)
      if (no !== undefined) return no
      const call = { method: 'DELETE', path: toPath('v1/keys', which), body: {} } as const
      return callAndConfirm(byStore(context), call)
    },
  },
]

const BREAK_TEXTS = {
  changed: (at: number) => `at entry ${at}: it, or one before it, was changed`,
  cut: (at: number) => `at entry ${at}: it and what came after it are gone`,
  unknown: () => 'somewhere: the entry that was asked for is not in it',
} as const

export const audit: readonly Command[] = [
  listCommand<AuditRecord>({
    name: 'audit list',
    description: 'list the audit log, newest first',
    options: { ...textOptions({ from: 'since then, as 2026-01-31T12:00:00Z', to: 'before then' }), ...PAGE_OPTIONS },
    path: '/v1/audit',
    columns: [{ title: 'at', cell: ({ at }) => formatTime(at) }, 'who', 'what'],
    none: 'Nobody has done anything.',
  }),
  {
    name: 'audit verify',
    description: 'verify the audit log; exit code 1 if an entry was changed or is missing',
    options: textOptions({ head: 'what an earlier one said to keep: it must still be in the log' }),
    run: async (context) => {
      const { output: out, args: given } = context
      const answer = await callApi(context, { method: 'GET', path: '/v1/audit/verify', query: given.texts(['head']) })
      if (answer.kind !== 'done') return reportFailure(out, answer)
      const verified = answer.value as AuditVerification
      if (out.asJson) out.printJson(verified)
      else if (verified.kind === 'whole')
        out.print(`The chain is whole: ${formatCount(verified.entries, 'entry', 'entries')}.`)
      else out.print(out.paint('red', `The chain is broken ${BREAK_TEXTS[verified.why](verified.at)}.`))
      if (verified.kind !== 'whole') return EXIT.failed
      if (verified.head !== undefined) out.printVerbose(`Its head, to be kept elsewhere: --head=${verified.head.chain}`)
      return EXIT.done
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
      title: 'what',
      cell: ({ text, broken }) => (broken === undefined ? text : `${text} Its when throws: ${broken}`.trim()),
    },
  ],
  none: 'The app declares no alerts.',
})

export const purge: Command = {
  name: 'purge',
  description: 'purge everything of one key, tenant or event; cannot be undone',
  options: {
    ...textOptions({
      flow: 'together with --key',
      key: 'together with --flow',
      tenant: 'all of a tenant',
      event: 'one event',
    }),
    yes: YES_OPTION,
  },
  run: async (context) => {
    const body = context.args.texts(['flow', 'key', 'tenant', 'event'])
    const named = Object.keys(body).join('+')
    if (!['flow+key', 'tenant', 'event'].includes(named)) {
      return reportMisuse(context, 'Pass --flow and --key, or --tenant, or --event.')
    }
    const what = Object.entries(body).map(([name, value]) => `${name} ${JSON.stringify(value)}`)
    const { location: where } = await context.connect()
    const no = await confirmOrExit(
      context,
      `Everything of ${what.join(' and ')} is removed for good from ${where}. Go on?`,
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
