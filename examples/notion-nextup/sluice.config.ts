// What `sluice dev` and `sluice start` run: NextUp as the environment says. README.md lists the variables.
import { nextUp } from './nextup.ts'
import { settingsFrom } from './settings.ts'

// oxlint-disable-next-line import/no-default-export -- this is where the command line looks for the app
export default nextUp(settingsFrom(process.env), { log: { level: 'debug', format: 'pretty-lines' } })
