// All routes of the admin API.
import type { ApiRoute } from '../route.ts'
import { deadLetters } from './dead-letters.ts'
import { flows } from './flows.ts'

export const ROUTES: readonly ApiRoute[] = [...flows, ...deadLetters]
