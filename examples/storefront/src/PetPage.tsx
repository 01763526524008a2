/** One animal. */

import type { PetStatus } from '@petstore-catalogue/petstore/client'
import { useQuery } from '@tanstack/react-query'
import { Nothing } from './Nothing.tsx'
import { Page } from './Page.tsx'
import { PetCard } from './PetCard.tsx'
import { Portrait } from './Portrait.tsx'
import { useTRPC } from './petstore.ts'
import { links } from './route.ts'
import { categoryOf, howToAsk, statusNames, statusSentences } from './shop.ts'
import { isInTrouble, Trouble } from './Trouble.tsx'

/** The input of listPets that gives one animal: getPet is deprecated and ends in 2030. */
export const onlyPet = (id: bigint) => ({ cursor: id - 1n, limit: 1 })

/** How many animals more are shown: one row, on a wide screen. */
const MORE = 4

interface Props {
  id: bigint
  /** The status by which the catalogue is filtered, to come back to. */
  filter: PetStatus | undefined
}

export function PetPage({ id, filter }: Props) {
  const trpc = useTRPC()
  const query = useQuery(trpc.listPets.queryOptions(onlyPet(id)))
  const pet = query.data?.find((found) => found.id === id)
  const back = (
    <a className="back" href={links.catalogue(filter)}>
      <span aria-hidden="true">← </span>
      {filter ? `${statusNames[filter]} animals` : 'All animals'}
    </a>
  )

  if (query.data && !pet) {
    return (
      <>
        {back}
        <Page title="Not in the catalogue">
          <Nothing>
            <p>There is no animal with the number {String(id)}.</p>
            <a className="button" href={links.catalogue()}>
              See our animals
            </a>
          </Nothing>
        </Page>
      </>
    )
  }
  const category = pet && categoryOf(pet.categoryId)
  const species = category?.species ?? (isInTrouble(query) ? 'paw' : undefined)
  return (
    <>
      {back}
      <div className="pet">
        {species ? (
          <Portrait species={species} name={pet?.name ?? ''} />
        ) : (
          <div className="portrait skeleton" />
        )}
        <div>
          <Page title={pet?.name ?? `Animal ${id}`}>
            <Trouble query={query} />
            {pet && category && (
              <>
                <p className="subtitle">{category.name}</p>
                <p className={`status ${pet.status}`}>
                  {pet.name} {statusSentences[pet.status]}
                </p>
                <p className="contact">
                  {pet.status === 'sold' ? 'Looking for one like this?' : 'Interested?'} Mention{' '}
                  <strong>no. {String(id)}</strong> {howToAsk}.
                </p>
              </>
            )}
          </Page>
        </div>
      </div>
      {pet && <MoreAnimals after={id} filter={filter} />}
    </>
  )
}

/** The animals that come next in the catalogue; nothing where it ends. */
function MoreAnimals({ after, filter }: { after: bigint; filter: PetStatus | undefined }) {
  const trpc = useTRPC()
  const { data: pets = [] } = useQuery(
    trpc.listPets.queryOptions({ cursor: after, limit: MORE, ...(filter && { status: filter }) }),
  )
  if (pets.length === 0) return null
  return (
    <section className="more" aria-labelledby="more">
      <h2 id="more">More animals</h2>
      <ul className="grid">
        {pets.map((pet) => (
          <li key={String(pet.id)}>
            <PetCard pet={pet} filter={filter} />
          </li>
        ))}
      </ul>
    </section>
  )
}
