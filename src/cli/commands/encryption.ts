// `sluice encryption show` counts the encrypted documents by key; `sluice encryption rotate` encrypts all of them with the first key.
import type { EncryptionState, RotationPage } from '../../admin/encryption.ts'
import { callApi, callAndPrint, type Command, type CommandContext } from '../command.ts'
import { EXIT, type ExitCode } from '../exit.ts'
import { formatCount } from '../output.ts'
import { reportFailure } from '../problem.ts'
import { Progress } from '../progress.ts'

const STATE_CALL = { method: 'GET', path: '/v1/encryption' } as const
const ADD_KEY_FIX = 'Append the key that encrypted them to SLUICE_ENCRYPTION_KEY, after a comma.'

export const encryptionCommands: readonly Command[] = [
  {
    name: 'encryption show',
    description: 'count the encrypted documents by key',
    run: (context) =>
      callAndPrint(context, STATE_CALL, ({ key, documents, older, unreadable }: EncryptionState) => {
        context.output.fields([
          ['key', key === '' ? 'none' : key],
          ['documents', documents],
          ['with an older key', older],
          ['unreadable', unreadable.length],
        ])
        printUnreadable(context, unreadable)
      }),
  },
  {
    name: 'encryption rotate',
    description:
      'encrypt everything with the first key of SLUICE_ENCRYPTION_KEY; a second call continues an interrupted one',
    run: async (context) => {
      const before = await callApi(context, STATE_CALL)
      if (before.kind !== 'done') return reportFailure(context.output, before)
      return rotateAll(context, (before.value as EncryptionState).documents)
    },
  },
]

async function rotateAll(context: CommandContext, total: number): Promise<ExitCode> {
  const { output, clock, signal } = context
  const progress = new Progress({ stream: output.stderr, clock, what: 'encryption rotate', total })
  const sum = { scanned: 0, reencrypted: 0, unreadable: [] as string[] }
  for (let after: string | undefined, isFirst = true; isFirst || after !== undefined; isFirst = false) {
    const body = after === undefined ? {} : { after }
    const result = await callApi(context, { method: 'POST', path: '/v1/encryption/rotate', body })
    if (result.kind !== 'done') return reportFailure(output, result)
    const page = result.value as RotationPage
    sum.scanned += page.scanned
    sum.reencrypted += page.reencrypted
    sum.unreadable.push(...page.unreadable)
    after = page.next
    progress.update(sum.scanned)
    if (signal.aborted && after !== undefined) {
      output.note('The rotation was interrupted. Run the command again to continue.')
      return EXIT.failed
    }
  }
  progress.end()
  if (output.asJson) output.printJson(sum)
  else output.print(`${formatCount(sum.reencrypted, 'document')} of ${sum.scanned} encrypted again with the first key.`)
  printUnreadable(context, sum.unreadable)
  if (sum.unreadable.length > 0) return EXIT.failed
  if (!output.asJson) output.note('Remove the older keys once this key is the first one in every process.')
  return EXIT.done
}

function printUnreadable({ output }: CommandContext, unreadable: readonly string[]): void {
  if (unreadable.length === 0 || output.asJson) return
  output.note(`No available key decrypts ${unreadable.slice(0, 10).join(', ')}. ${ADD_KEY_FIX}`)
}
