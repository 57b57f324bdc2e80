// `sluice backup`: a copy of the store's file while a process works on it. It asks nobody: it reads the file, as any reader may.
import { backupSqlite } from '../../store/sqlite/backup.ts'
import type { Command } from '../command.ts'
import { EXIT } from '../exit.ts'

export const backup: Command = {
  words: 'backup',
  takes: ['<file>', '<copy>'],
  says: 'copy the file of a SQLite store while it is in use; all that was acknowledged before is in the copy',
  run: async ({ given, out }) => {
    const [file = '', copy = ''] = given.words
    const made = backupSqlite(file, copy)
    if (out.asJson) out.answer(made)
    else out.line(`${made.file} has ${made.events} events in ${made.bytes} bytes, and is whole.`)
    return EXIT.done
  },
}
