// fast-check with one seed for all properties: a test that passes once passes always. `SEED=<n>` uses other values.
// vitest.config.ts replaces the package with this module.
import fc from 'fast-check'

export const SEED = Number(process.env['SEED'] ?? 20_261_115)

fc.configureGlobal({ seed: SEED })

// oxlint-disable-next-line import/no-default-export -- the package has one
export default fc
export * from 'fast-check'
