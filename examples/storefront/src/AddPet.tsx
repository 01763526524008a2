/** The form for a new animal, with a preview. */

import {
  isApiError,
  newIdempotencyKey,
  type Pet,
  type PetStatus,
} from '@petstore-catalogue/petstore/client'
import { useIsMutating, useMutation, useQueryClient } from '@tanstack/react-query'
import { type ChangeEvent, type SubmitEvent, useRef, useState } from 'react'
import { Field } from './Field.tsx'
import { lengthOf, MAX_LENGTH } from './name.ts'
import { Page } from './Page.tsx'
import { CardContent } from './PetCard.tsx'
import { isTemporary, useTRPC } from './petstore.ts'
import { onlyPet } from './queries.ts'
import { type Filter, go, links, statuses } from './route.ts'
import { categories, categoryOf, statusNames } from './shop.ts'

interface Props {
  /** The filter of the catalogue for the link back. */
  filter: Filter
  onAdded(pet: Pet): void
}

interface Entered {
  name: string
  /** The number of a category; empty until one is chosen. */
  categoryId: string
  status: PetStatus
}

/** The error messages of the fields. */
type Problems = Partial<Record<string, string>>

export function AddPet({ filter, onAdded }: Props) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const form = useRef<HTMLFormElement>(null)
  const [entered, setEntered] = useState<Entered>({ name: '', categoryId: '', status: 'available' })
  // The name of the picture, which would otherwise change with every letter.
  const [settledName, setSettledName] = useState('')
  const [problems, setProblems] = useState<Problems>({})
  // Moves the focus to the first invalid field.
  const complain = (found: Problems) => {
    setProblems(found)
    const [first = ''] = Object.keys(found)
    const control = form.current?.elements.namedItem(first)
    if (control instanceof HTMLElement) control.focus()
  }
  // A repeated submit of the same form creates one animal; a changed form has a new key.
  const [idempotencyKey, setIdempotencyKey] = useState(newIdempotencyKey)
  const creation = useMutation(
    trpc.createPet.mutationOptions({
      trpc: { context: { idempotencyKey } },
      onError: (error) => complain(refusedFields(error)),
      async onSuccess(pet) {
        await queryClient.invalidateQueries(trpc.listPets.pathFilter())
        queryClient.setQueryData(trpc.listPets.queryKey(onlyPet(pet.id)), [pet])
        // A form that was cancelled leads nowhere.
        if (form.current) go(links.pet(pet.id, filter))
        onAdded(pet)
      },
    }),
  )
  // Another form, which was cancelled, may still be adding its animal.
  const isAdding = useIsMutating() > 0
  const change = ({
    target: { name, value },
  }: ChangeEvent<HTMLInputElement | HTMLSelectElement>) => {
    setEntered({ ...entered, [name]: value })
    setProblems(({ [name]: _mended, ...others }) => others)
    setIdempotencyKey(newIdempotencyKey())
    if (creation.isError) creation.reset()
  }
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    // Asked here: of a second submit, the last rendering knows nothing yet.
    if (queryClient.isMutating() > 0) return
    const missing = findMissing(entered)
    if (Object.keys(missing).length > 0) complain(missing)
    else creation.mutate({ ...entered, categoryId: BigInt(entered.categoryId) })
  }
  const category = entered.categoryId === '' ? undefined : categoryOf(BigInt(entered.categoryId))

  return (
    <Page title="Add an animal">
      <div className="add">
        <form className="panel" ref={form} noValidate onSubmit={submit}>
          <Field
            label="Name"
            name="name"
            problem={problems.name}
            aside={`${lengthOf(entered.name)} of ${MAX_LENGTH}`}
          >
            {(control) => (
              <input
                {...control}
                value={entered.name}
                onChange={change}
                onBlur={() => setSettledName(entered.name)}
                autoComplete="off"
              />
            )}
          </Field>
          <Field label="Category" name="categoryId" problem={problems.categoryId}>
            {(control) => (
              <select {...control} value={entered.categoryId} onChange={change}>
                <option value="" disabled>
                  Choose one
                </option>
                {[...categories].map(([id, category]) => (
                  <option key={String(id)} value={String(id)}>
                    {category.name}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label="Availability" name="status" problem={problems.status}>
            {(control) => (
              <select {...control} value={entered.status} onChange={change}>
                {statuses.map((status) => (
                  <option key={status} value={status}>
                    {statusNames[status]}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <p className="refusal" role="alert">
            {creation.error && Object.keys(problems).length === 0 && explain(creation.error)}
          </p>
          <div className="actions">
            <button type="submit" disabled={isAdding}>
              {isAdding ? 'Adding…' : 'Add to the catalogue'}
            </button>
            <a className="button quiet" href={links.catalogue(filter)}>
              Cancel
            </a>
          </div>
        </form>
        <div className={`card preview ${entered.status}`} aria-hidden="true">
          <CardContent
            name={entered.name.trim() || 'Who is it?'}
            coatOf={settledName}
            category={category}
            status={entered.status}
          />
        </div>
      </div>
    </Page>
  )
}

/** Errors that the page detects without a request. */
const findMissing = ({ name, categoryId }: Entered): Problems => ({
  ...(name.trim() === '' && { name: 'Please enter a name' }),
  ...(categoryId === '' && { categoryId: 'Please choose a category' }),
})

/** The fields as the subject of a sentence. */
const subjects: Partial<Record<string, string>> = {
  name: 'The name',
  categoryId: 'The category',
  status: 'The availability',
}

/** The errors of the service by field; their messages begin with `must be …`. */
function refusedFields(error: unknown): Problems {
  if (!isApiError(error)) return {}
  return Object.fromEntries(
    Object.entries(error.fields).map(([name, problem]) => [
      name,
      `${subjects[name] ?? name} ${problem}`,
    ]),
  )
}

function explain(error: { message: string }): string {
  if (isTemporary(error))
    return 'The shop cannot be reached right now. Try again in a moment: while this form is open, nothing is lost, and nothing is added twice.'
  return `That did not work: ${error.message}`
}
