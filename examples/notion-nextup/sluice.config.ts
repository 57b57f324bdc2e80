// What `sluice dev` and `sluice start` run: NextUp as the environment says. README.md lists the variables.
import { nextUp } from './nextup.ts'
import { settingsFrom } from './settings.ts'

const settings = settingsFrom(process.env)

export default nextUp(settings, { log: settings.isLogging && { level: 'debug', format: 'pretty-lines' } })
