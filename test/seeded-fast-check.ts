// fast-check with one seed for all properties: a test that passes once passes always. `SEED=<n>` tries other values.
// vitest.config.ts puts this module in the place of the package.
import fc from 'fast-check'

export const SEED = Number(process.env['SEED'] ?? 20_261_115)

fc.configureGlobal({ seed: SEED })

// oxlint-disable-next-line import/no-default-export -- the package has one
export default fc
export * from 'fast-check'
