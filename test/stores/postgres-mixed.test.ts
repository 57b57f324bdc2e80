// The PostgreSQL store passes the whole conformance suite if the server decides some calls, the rules others, and the server gives up
// some that it has begun.
import { conformanceOnPostgres } from './postgres-conformance.ts'

conformanceOnPostgres('mixed')
