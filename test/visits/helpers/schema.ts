/** The inputs and outputs of helpers, who come to visits. */
import { z } from 'zod'
import { int64Input, int64Output, textInput, textOutput } from '../../../src/procedure/fields.ts'
import { pagingInputs } from '../../../src/procedure/paging.ts'
import { OneVisit } from '../visits/schema.ts'

const helperId = int64Input({ description: 'Identifier of the helper.' })

export const NewHelper = z
  .object({ name: textInput({ description: 'The name.' }, 40) })
  .meta({ id: 'NewHelper', description: 'A helper to add.' })

export const Helper = z
  .object({
    id: int64Output({ description: 'Identifies the helper.' }),
    name: textOutput({ description: 'The name.' }, 40),
    visits: int64Output({ description: 'The number of visits that the helper comes to.' }),
  })
  .meta({ id: 'Helper', description: 'A helper.' })

export const OneHelper = z.object({ helperId })

export const ListVisitsOfHelper = OneHelper.extend(pagingInputs('visits'))

/** A visit of an owner, and a helper who comes to it. */
export const HelperOfVisit = OneVisit.extend({ helperId })

export type NewHelper = z.output<typeof NewHelper>
export type Helper = z.output<typeof Helper>
export type ListVisitsOfHelper = z.output<typeof ListVisitsOfHelper>
export type HelperOfVisit = z.output<typeof HelperOfVisit>
