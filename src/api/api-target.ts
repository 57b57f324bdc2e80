// `ApiTarget` is the part of an app that the admin API reads and controls.
import type { Admin } from '../admin/admin.ts'
import type { Endpoints } from '../deliver/endpoints.ts'
import type { Explanation } from '../observe/explain/explain.ts'

export interface ApiTarget {
  readonly admin: Admin
  readonly endpoints: Endpoints
  explain(flow: string, key: string): Promise<Explanation>
}
