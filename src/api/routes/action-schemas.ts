// Schemas that operators' actions share: reason and duration.
import { z } from 'zod'
import type { Duration } from '../../model/duration.ts'

export const reason: z.ZodType<string> = z.string().min(1).max(1_000)

export const duration: z.ZodType<Duration> = z
  .string()
  .regex(/^\d{1,12}(?:\.\d{1,3})?(?:ms|s|m|h|d)$/, "it must be a duration such as '250ms', '10s' or '7d'")
  .meta({ description: 'A duration.', example: '10m' }) as unknown as z.ZodType<Duration>
