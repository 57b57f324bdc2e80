// The PostgreSQL store passes the whole conformance suite if the server decides each call that needs no rules.
import { conformanceOnPostgres } from './postgres-conformance.ts'

conformanceOnPostgres('direct')
