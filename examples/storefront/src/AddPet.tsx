/** Adds an animal; what is wrong with a field, the service says. */

import { isApiError, type PetStatus } from '@petstore-catalogue/petstore/client'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type InputHTMLAttributes, useEffect, useRef, useState } from 'react'
import { Page } from './Page.tsx'
import { onlyPet } from './PetPage.tsx'
import { isTemporary, useTRPC } from './petstore.ts'
import { go, links, statuses } from './route.ts'

export function AddPet() {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const form = useRef<HTMLFormElement>(null)
  // To send the form again as it is adds nothing that was added before; once it changes, it does.
  const [idempotencyKey, setIdempotencyKey] = useState(newKey)
  const { mutate, isPending, error } = useMutation(
    trpc.createPet.mutationOptions({
      trpc: { context: { idempotencyKey } },
      async onSuccess(pet) {
        await queryClient.invalidateQueries(trpc.listPets.pathFilter())
        queryClient.setQueryData(trpc.listPets.queryKey(onlyPet(pet.id)), [pet])
        go(links.pet(pet.id))
      },
    }),
  )
  const fields = isApiError(error) ? error.fields : {}
  useEffect(() => {
    if (error) form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus()
  }, [error])

  return (
    <Page title="Add an animal">
      <form
        className="panel"
        ref={form}
        noValidate
        onChange={() => setIdempotencyKey(newKey())}
        onSubmit={(event) => {
          event.preventDefault()
          const entered = new FormData(event.currentTarget)
          mutate({
            name: String(entered.get('name')),
            categoryId: toInt64(String(entered.get('categoryId'))),
            status: entered.get('status') as PetStatus, // one of the options below
          })
        }}
      >
        <Field label="Name" name="name" problem={fields.name} autoComplete="off" />
        <Field
          label="Category"
          hint="The number of the category it belongs to"
          name="categoryId"
          problem={fields.categoryId}
          inputMode="numeric"
          autoComplete="off"
        />
        <label htmlFor="status">Availability</label>
        <select id="status" name="status">
          {statuses.map((status) => (
            <option key={status}>{status}</option>
          ))}
        </select>
        <p className="problem" role="alert">
          {error && Object.keys(fields).length === 0 && explain(error)}
        </p>
        <div className="actions">
          <button type="submit" disabled={isPending}>
            {isPending ? 'Adding…' : 'Add to the catalogue'}
          </button>
          <a href={links.catalogue()}>Cancel</a>
        </div>
      </form>
    </Page>
  )
}

interface FieldProps extends InputHTMLAttributes<HTMLInputElement> {
  label: string
  hint?: string
  name: string
  problem: string | undefined
}

function Field({ label, hint, name, problem, ...input }: FieldProps) {
  return (
    <>
      <label htmlFor={name}>{label}</label>
      {hint && (
        <p className="hint" id={`${name}-hint`}>
          {hint}
        </p>
      )}
      <input
        id={name}
        name={name}
        aria-invalid={problem !== undefined}
        aria-describedby={`${name}-hint ${name}-problem`}
        {...input}
      />
      <p className="problem" id={`${name}-problem`}>
        {problem && `${label} ${problem}`}
      </p>
    </>
  )
}

const newKey = () => crypto.randomUUID()

// Anything but an integer becomes NaN, so that the service says what it wants instead.
const toInt64 = (text: string) => (/^-?\d+$/.test(text.trim()) ? BigInt(text.trim()) : Number.NaN)

const explain = (error: { message: string }) =>
  isTemporary(error)
    ? 'The service cannot be reached right now. Try again in a moment: nothing is lost, and nothing is added twice.'
    : `The service answered: ${error.message}`
