// `sluice backup` copies the store's file while a process uses it. It needs no server: any reader may read the file.
import { backupSqlite } from '../../store/sqlite/backup.ts'
import { isServerAddress } from '../../store/open.ts'
import { reportMisuse, type Command } from '../command.ts'
import { EXIT } from '../exit.ts'

export const backup: Command = {
  name: 'backup',
  positionals: ['<file>', '<copy>'],
  description: 'copy a SQLite store while it is in use, with every event acknowledged before',
  run: async (context) => {
    const { args: given, output: out } = context
    const [file = '', copy = ''] = given.words
    if (isServerAddress(file)) return reportMisuse(context, 'backup copies the file of a SQLite store: give its path.')
    const made = backupSqlite(file, copy)
    if (out.asJson) out.printJson(made)
    else out.print(`${made.file} has ${made.events} events in ${made.bytes} bytes, and is intact.`)
    return EXIT.done
  },
}
