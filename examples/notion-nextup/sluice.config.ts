// What `sluice dev` and `sluice start` run: NextUp as the environment says. README.md lists the variables.
import { nextUp } from './nextup.ts'
import { settingsFrom } from './settings.ts'

export default nextUp(settingsFrom(process.env), { log: { level: 'debug', format: 'pretty-lines' } })
