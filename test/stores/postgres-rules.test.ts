// The PostgreSQL store passes the whole conformance suite if the rules decide every call.
import { conformanceOnPostgres } from './postgres-conformance.ts'

conformanceOnPostgres('rules')
