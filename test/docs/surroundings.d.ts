// What the fragments in the documents take from around them, e.g. the app and the functions of its domain.
import type { Clock, RunContext, Sluice, SluiceOptions } from 'sluice'

declare global {}
